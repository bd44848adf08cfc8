"""The generated part of the chart: its values, its templates, and the files that are made of them."""
