package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/store"
)

func newInit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the state, fetch extensions, and write a first configuration",
		Long: "init makes what apply and serve need: the state directory with its master key, the private Postgres unless\n" +
			"QOD_DATABASE_URL names one, DuckDB's extensions, and the lock file of the stack. In a directory without a\n" +
			"configuration it writes a first one. Run again it changes nothing.",
		Example: "  qod init --stack sales\n  qod init --extensions-from ./extensions",
		Args:    noArguments,
	}
	stack := cmd.Flags().String("stack", "", "`NAME` of the stack of a new configuration; default: that of the directory")
	from := cmd.Flags().String("extensions-from", "", "take DuckDB's extensions from this `DIRECTORY` instead of DuckDB's repository")
	vars := varFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.firstConfiguration(*stack); err != nil {
			return err
		}
		if err := a.paths.make(); err != nil {
			return err
		}
		if err := fetchExtensions(cmd.Context(), a.paths.ExtensionDir, a.paths.file(*from)); err != nil {
			return err
		}
		w, err := a.open(cmd.Context(), openOptions{create: true})
		if err != nil {
			return err
		}
		defer w.Close()
		if err := a.initLineage(cmd, w, *vars); err != nil {
			return err
		}
		a.printf("State is in %s\n", a.paths.StateDir)
		return nil
	}
	return cmd
}

// initLineage makes the lock file when the configuration's stack is new here.
func (a *app) initLineage(cmd *cobra.Command, w *world, vars []config.Given) error {
	loaded, diags := config.Load(a.paths.Dir)
	if diags.HasErrors() {
		return nil // plan and validate report what is wrong with the configuration
	}
	desired, _ := loaded.Evaluate(a.inputs(vars))
	if desired == nil || desired.Stack == "" {
		return nil
	}
	lineage, err := readLineage(a.paths.Dir, desired.Stack)
	if err != nil || lineage != "" {
		return err
	}
	if err := w.checkStack(cmd.Context(), store.Stack{Name: desired.Stack}, false); err != nil {
		return err
	}
	return writeLineage(a.paths.Dir, desired.Stack, uuid.NewString())
}

const firstFile = `# The tenants, databases, pools and users of this stack. See qod plan.
qod {
  stack = %q
}

tenant "acme" {
  display_name = "Acme"
}

tenant_db "sales" {
  tenant = tenant.acme
  kind   = "ducklake"
}

pool "bi" {
  tenant_db = tenant_db.sales
  memory    = "1GiB"

  nodes {
    dual = 1
  }
}

role "owner" {
  tenant = tenant.acme

  permission {
    privileges = ["all"]
  }
}

variable "ana_password" {
  type      = string
  sensitive = true
}

user "ana" {
  tenant   = tenant.acme
  roles    = [role.owner]
  password = var.ana_password
}

pool_grant "ana" {
  pool = pool.bi
  user = user.ana
}

output "login" {
  description = "How ana logs in: qod sql --user."
  value       = "${user.ana.name}@${tenant.acme.name}/${pool.bi.name}"
}
`

// firstConfiguration writes main.qod.hcl in a directory without any configuration.
func (a *app) firstConfiguration(stack string) error {
	entries, err := os.ReadDir(a.paths.Dir)
	if err != nil {
		return fmt.Errorf("look for a configuration: %w", err)
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return config.IsConfig(e.Name()) }) {
		return nil
	}
	if stack == "" {
		stack = slugOf(filepath.Base(a.paths.Dir))
	}
	name := filepath.Join(a.paths.Dir, "main.qod.hcl")
	if err := os.WriteFile(name, fmt.Appendf(nil, firstFile, stack), 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	a.printf("Wrote %s. Give it a password and see the plan: QOD_VAR_ana_password=… qod plan\n", name)
	return nil
}

// slugOf makes a stack's name from a directory's.
func slugOf(name string) string {
	var out []rune
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			out = append(out, r-'A'+'a')
		case r >= 'a' && r <= 'z', len(out) > 0 && (r >= '0' && r <= '9' || r == '-' || r == '_'):
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return "main"
	}
	return string(out[:min(len(out), 63)])
}
