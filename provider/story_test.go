package provider

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/test/terraform"
)

func newStory(t *testing.T, text string) (*terraform.Workspace, *double) {
	t.Helper()
	d := newDouble(t)
	w := terraform.New(t, d.URL, doubleToken)
	w.Write(t, "main.tf", text)
	return w, d
}

// put writes an object as somebody else does.
func (d *double) putAs(t *testing.T, stack, kind, spec string) {
	t.Helper()
	r := client.Request{Stack: stack, Changes: []client.Change{{Action: client.Put, Kind: kind, Spec: []byte(spec)}}}
	if _, err := terraform.Ask(t, d.URL, doubleToken).Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// A rename that was interrupted after its commit is found, and nothing is made anew.
func TestRenameByOthers(t *testing.T) {
	w, d := newStory(t, terraform.Estate)
	w.Apply(t)
	r := client.Request{Stack: "core", Changes: []client.Change{{Action: client.Put, Kind: "tenant", Key: "acme", Spec: []byte(`{"name":"apex"}`)}}}
	if _, err := terraform.Ask(t, d.URL, doubleToken).Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if out, code := w.Run(t, "plan", "-detailed-exitcode", "-var", "tenant=apex"); code != 0 {
		t.Errorf("ended with %d:\n%s", code, out)
	}
}

func TestOtherOwnersAreNamed(t *testing.T) {
	w, d := newStory(t, `resource "qod_tenant" "acme" { name = "acme" }`)
	d.putAs(t, "finance", "tenant", `{"name":"acme","display_name":"Acme"}`)
	w.Fails(t, `tenant.acme exists and belongs to stack "finance"`, "plan")
	// To import it is to take it over, and to show so.
	w.Write(t, "main.tf", `
resource "qod_tenant" "acme" {
  name         = "acme"
  display_name = "Acme"
}
import {
  to = qod_tenant.acme
  id = "acme"
}
`)
	if out := w.Must(t, "plan"); !strings.Contains(out, `"finance" -> "core"`) {
		t.Errorf("the plan does not show who owns it now:\n%s", out)
	}
	w.Apply(t)
	w.Unchanged(t)
	// Who takes it back is named, and not fought.
	r := client.Request{Stack: "finance", Changes: []client.Change{{
		Action: client.Put, Kind: "tenant", Key: "acme", Spec: []byte(`{"name":"acme"}`), TakeOver: true,
	}}}
	if _, err := terraform.Ask(t, d.URL, doubleToken).Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.Fails(t, `tenant.acme belongs to stack "finance"`, "plan")
}

// A conflict that only the server knows of is told as well.
func TestConflictDuringApply(t *testing.T) {
	w, d := newStory(t, `resource "qod_tenant" "acme" { name = "acme" }`)
	w.Must(t, "plan", "-out=p")
	d.putAs(t, "finance", "tenant", `{"name":"acme"}`)
	w.Fails(t, `belongs to stack "finance"`, "apply", "p")
}

func TestWhatChangedSinceThePlanIsNotOverwritten(t *testing.T) {
	const text = `
variable "line" { default = "one" }
resource "qod_tenant" "acme" { name = "acme" }
resource "qod_role" "r" {
  tenant      = qod_tenant.acme.name
  name        = "r"
  description = var.line
}
`
	w, d := newStory(t, text)
	w.Apply(t)
	w.Must(t, "plan", "-out=p", "-var", "line=two")
	d.putAs(t, "core", "role", `{"tenant":"acme","name":"r","description":"three"}`)
	w.Fails(t, "Somebody changed its description since this was planned", "apply", "p")
	// Where somebody else did what was planned, all is well.
	w.Must(t, "plan", "-out=p", "-var", "line=two")
	d.putAs(t, "core", "role", `{"tenant":"acme","name":"r","description":"two"}`)
	w.Must(t, "apply", "p")
}

// What an apply that was killed had made is taken up, and no second one made.
func TestKilledApply(t *testing.T) {
	w, d := newStory(t, terraform.Estate)
	d.putAs(t, "core", "tenant", `{"name":"acme"}`)
	if out := w.Must(t, "plan"); !strings.Contains(terraform.Flat(out), "tenant.acme exists already") {
		t.Errorf("the plan does not say so:\n%s", out)
	}
	w.Apply(t)
	w.Unchanged(t)
	if n := d.count(); n != 6 {
		t.Errorf("there are %d objects", n)
	}
}

func TestOneObjectInTwoResources(t *testing.T) {
	w, _ := newStory(t, `
resource "qod_tenant" "a" { name = "acme" }
resource "qod_tenant" "b" {
  name         = "acme"
  display_name = "Other"
}`)
	w.Fails(t, "tenant.acme is written twice", "apply", "-auto-approve")
}

func TestReadiness(t *testing.T) {
	w, d := newStory(t, strings.Replace(terraform.Estate, `tenant_db = qod_tenant_db.sales.name`, `tenant_db = qod_tenant_db.sales.name
  timeouts = { create = "2s" }`, 1))
	d.with(func() { d.stuck = "the extension ducklake is missing" })
	out := w.Fails(t, "pool.acme/bi is not ready after 2s", "apply", "-auto-approve")
	if !strings.Contains(terraform.Flat(out), "Node n2 (dual) is starting: the extension ducklake is missing.") || strings.Contains(out, "Node n1") {
		t.Errorf("it is not said why:\n%s", out)
	}
}

// An interrupt while a pool is waited for leaves no taint.
func TestInterrupt(t *testing.T) {
	w, d := newStory(t, terraform.Estate)
	d.with(func() { d.stuck = "there is no room" })
	cmd := exec.CommandContext(t.Context(), w.Program, "apply", "-auto-approve", "-no-color")
	cmd.Dir, cmd.Env = w.Dir, w.Env
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waits := func() (waits bool) {
		d.with(func() {
			for _, o := range d.objects {
				waits = waits || o.Kind == "pool" && o.looks > 1
			}
		})
		return waits
	}
	for deadline := time.Now().Add(time.Minute); !waits() && time.Now().Before(deadline); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("the interrupted apply: %v\n%s", err, out.String())
	}
	d.with(func() { d.stuck = "" })
	id := w.State(t)["qod_pool.bi"][attrID]
	w.Apply(t)
	w.Unchanged(t)
	if now := w.State(t)["qod_pool.bi"][attrID]; id == nil || now != id {
		t.Errorf("the pool was %v and is %v:\n%s", id, now, out.String())
	}
}

func TestProtectionsAreKnownBeforehand(t *testing.T) {
	w, _ := newStory(t, `
resource "qod_tenant" "acme" { name = "acme" }
resource "qod_tenant_db" "sales" {
  tenant = qod_tenant.acme.name
  name   = "sales"
  kind   = "ducklake"
}
resource "qod_tenant" "other" {
  name      = "other"
  protected = true
}
`)
	w.Apply(t)
	w.Unchanged(t)
	out := w.Fails(t, "tenant.other is protected and may not be destroyed", "plan", "-destroy")
	if !strings.Contains(terraform.Flat(out), "tenant_db.acme/sales holds data and may not be destroyed") {
		t.Errorf("the database is not mentioned:\n%s", out)
	}
	w.Write(t, "main.tf", `
resource "qod_tenant" "acme" { name = "acme" }
resource "qod_tenant_db" "sales" {
  tenant        = qod_tenant.other.name
  name          = "sales"
  kind          = "ducklake"
}
resource "qod_tenant" "other" { name = "other" }
`)
	w.Fails(t, "tenant_db.acme/sales cannot be replaced", "plan")
}

// Terraform starts what does not depend on each other at once: that is few commits, and one bad change among them
// Fails alone.
func TestBatches(t *testing.T) {
	w, d := newStory(t, `
resource "qod_tenant" "t" {
  count = 40
  name  = "t${count.index}"
}
resource "qod_tenant_db" "bad" {
  tenant = "nobody"
  name   = "sales"
  kind   = "ducklake"
}
`)
	out := w.Fails(t, "There is no tenant.nobody", "apply", "-auto-approve", "-parallelism=50")
	if n := len(w.State(t)); n != 40 {
		t.Errorf("%d of 40 were made:\n%s", n, out)
	}
	w.Write(t, "main.tf", "")
	d.with(func() { d.applies = nil })
	w.Apply(t, "-parallelism=50")
	d.with(func() {
		if n := len(d.applies); n == 0 || n > 20 {
			t.Errorf("%d commits for 40 deletions", n)
		}
	})
}
