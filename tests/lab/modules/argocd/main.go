// Command argocd is Argo CD's application controller, its repo server, the
// server of a plugin, or the Redis that they share, depending on the name it is called by. Upstream's own
// main also needs the built web interface, which Go modules do not carry; the
// Redis is the one in memory that upstream's tests use.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	cmpserver "github.com/argoproj/argo-cd/v3/cmd/argocd-cmp-server/commands"
	reposerver "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"argocd-application-controller": controller.NewCommand,
		"argocd-cmp-server":             cmpserver.NewCommand,
		"argocd-repo-server":            reposerver.NewCommand,
		"argocd-redis":                  redis,
	}
	name := filepath.Base(os.Args[0])
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown program %q\n", name)
		os.Exit(2)
	}
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}

func redis() *cobra.Command {
	return &cobra.Command{
		Use:  "argocd-redis ADDRESS",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := miniredis.NewMiniRedis().StartAddr(args[0]); err != nil {
				return err
			}
			select {}
		},
	}
}
