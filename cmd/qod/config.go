package main

import (
	"fmt"
	"reflect"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newConfig(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print every effective setting and where it comes from",
		Long: "config prints every setting with its value, where that comes from, and the variable that sets it. A flag wins over\n" +
			"an environment variable, that over the file of --config, that over the default. Secrets are not shown.",
		Example: "  qod config\n  qod config --config server.hcl",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SETTING\tVALUE\tSOURCE\tVARIABLE")
			v := reflect.ValueOf(*a.paths.Settings)
			for _, s := range settingList() {
				value := fmt.Sprint(v.Field(s.index).Interface())
				if s.Secret && value != "" {
					value = "(secret)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, value, a.paths.sources[s.Name], s.Env())
			}
			return w.Flush()
		},
	}
}
