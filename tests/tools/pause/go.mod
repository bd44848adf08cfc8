module kvtier.dev/tests/tools/pause

go 1.24.0
