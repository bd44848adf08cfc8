// The Lua that Argo CD runs health scripts with.
module kvtier.dev/tests/tools/gopher-lua

go 1.26.0

tool github.com/yuin/gopher-lua/cmd/glua

require (
	github.com/chzyer/readline v1.5.1 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sys v0.42.0 // indirect
)
