"""What authors add to kvtier's pods or change in them: `podTemplate` of spec.engine and spec.router."""
