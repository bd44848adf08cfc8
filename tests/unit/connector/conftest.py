from tests.shared.hugepages import hugepage_pool

__all__ = ["hugepage_pool"]
