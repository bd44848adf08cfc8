from tests.hugepages import hugepage_pool

__all__ = ["hugepage_pool"]
