// Command terraform-provider-qod is the Terraform provider of qod. Terraform starts it; by hand it only says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/qod-io/qod/provider"
)

// version is set by the linker.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a Terraform that is told TF_REATTACH_PROVIDERS, to be looked at by a debugger")
	flag.Parse()
	if err := provider.Serve(context.Background(), version, *debug); err != nil {
		fmt.Fprintln(os.Stderr, "terraform-provider-qod:", err)
		os.Exit(1)
	}
}
