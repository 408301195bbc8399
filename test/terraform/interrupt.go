package terraform

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// points is how many applies are interrupted by each signal.
const points = 12

// waves is an estate that grows from one apply to the next, and changes what is there: each apply has something to make,
// and all before it to keep. Some of its pools have a node.
const waves = `
variable "waves" {
  type = number
}
locals {
  waves = { for n in range(var.waves) : format("w%02d", n) => n }
}
resource "qod_tenant" "it" {
  for_each     = local.waves
  name         = each.key
  display_name = "one of ${var.waves}"
}
resource "qod_tenant_db" "sales" {
  for_each      = qod_tenant.it
  tenant        = each.value.name
  name          = "sales"
  kind          = "ducklake"
  allow_destroy = true
}
resource "qod_pool" "bi" {
  for_each  = qod_tenant_db.sales
  tenant    = each.value.tenant
  name      = "bi"
  tenant_db = each.value.name
  nodes     = { dual = local.waves[each.key] % 5 == 1 ? 1 : 0 }
}
resource "qod_role" "analyst" {
  for_each = qod_tenant.it
  tenant   = each.value.name
  name     = "analyst"
}
resource "qod_user" "ana" {
  for_each = qod_role.analyst
  tenant   = each.value.tenant
  name     = "ana"
  roles    = [each.value.name, "qod:reader"]
}
resource "qod_pool_grant" "ana" {
  for_each = qod_user.ana
  tenant   = each.value.tenant
  pool     = qod_pool.bi[each.key].name
  user     = each.value.name
}
`

// Killed ends applies by SIGKILL, and Interrupted by SIGINT, as a terminal sends it. Both show that the next apply finds one
// of each object, replaces nothing and leaves nothing to do.
func Killed(t *testing.T, p *Place)      { interruptions(t, p, syscall.SIGKILL, 20261130) }
func Interrupted(t *testing.T, p *Place) { interruptions(t, p, syscall.SIGINT, 20261201) }

// growing is the estate of waves, applied through a gate.
type growing struct {
	*Workspace
	place  *Place
	gate   *gate
	signal syscall.Signal
	waves  int
	ids    map[string]string // of all objects that there ever were, by address
}

func interruptions(t *testing.T, p *Place, signal syscall.Signal, seed uint64) {
	gate := newGate(t, p.Server)
	g := &growing{Workspace: p.workspace(t, gate.URL), place: p, gate: gate, signal: signal, ids: map[string]string{}}
	g.Write(t, "main.tf", waves)
	chance := rand.New(rand.NewPCG(seed, uint64(signal)))
	done := map[point]int{}
	for interrupted := 0; interrupted < points; {
		at := point{nth: chance.IntN(9), answered: chance.IntN(2) == 0, whole: chance.IntN(2) == 0}
		for ; !g.interrupt(t, at); at.nth /= 2 { // it had done all by then: then sooner
			if at.nth == 0 {
				t.Fatal("an apply that adds a tenant sends no change")
			}
		}
		done[at]++
		interrupted++
		g.check(t, fmt.Sprintf("%s at %+v", signal, at))
	}
	if len(done) < points/2 {
		t.Errorf("interrupted at %v: these are too few different points", done)
	}
	g.Apply(t)
	g.Unchanged(t)
	g.check(t, "at the end")
	if got, want := len(g.ids), g.waves*strings.Count(waves, "resource "); got != want {
		t.Errorf("there are %d objects, want %d: %v", got, want, g.ids)
	}
	g.Apply(t, "-destroy")
	if left := p.ids(t); len(left) > 0 {
		t.Errorf("left after a destroy: %v", left)
	}
}

// interrupt adds a wave and ends the apply at that point. It reports whether the apply came so far.
func (g *growing) interrupt(t *testing.T, at point) bool {
	t.Helper()
	g.waves++
	g.Env = append(slices.Clip(g.Env), fmt.Sprintf("TF_VAR_waves=%d", g.waves)) // the last one counts
	cmd := g.command(t.Context(), "apply", "-auto-approve", "-input=false", "-no-color")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(filepath.Join(g.Dir, "apply.log")) // a pipe would be waited for as long as the provider lives
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	stop := g.gate.arm(at)
	defer stop.release()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // a provider outlives a Terraform that was killed
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-stop.reached:
	case err := <-ended:
		if err != nil {
			t.Fatalf("nobody interrupted the apply: %v\n%s", err, g.log(t))
		}
		return false
	case <-limit.C:
		t.Fatalf("the apply neither ends nor comes to %+v:\n%s", at, g.log(t))
	}
	g.end(t, cmd.Process.Pid, at, stop, ended)
	return true
}

// end sends the signal while the server or its answer waits, and waits for the end of the apply and of that request.
func (g *growing) end(t *testing.T, pid int, at point, stop *stop, ended <-chan error) {
	t.Helper()
	to := pid
	if at.whole || g.signal == syscall.SIGINT {
		to = -pid
	}
	if g.signal == syscall.SIGKILL {
		g.freeze(t, pid)
	}
	if err := syscall.Kill(to, g.signal); err != nil {
		t.Fatal(err)
	}
	if g.signal == syscall.SIGINT {
		stop.release() // what is sent is waited for
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		t.Fatalf("the interrupted apply does not end:\n%s", g.log(t))
	}
	stop.release()
	select {
	case <-stop.passed:
	case <-limit.C:
		t.Fatal("the server does not answer")
	}
}

// freeze stops a Terraform while its state is whole. It writes that in place: one that is killed in the middle has lost it,
// and what is left then is the same as without a state, which is not what is tried here.
func (g *growing) freeze(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 10_000 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for stopped := false; !stopped; <-tick.C {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(stat), ") ")
			stopped = strings.HasPrefix(rest, "T") || strings.HasPrefix(rest, "Z")
		}
		if _, err := g.statuses(); err == nil {
			return
		}
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	t.Fatal("Terraform never has a whole state")
}

func (g *growing) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.Dir, "apply.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// check shows that no object was made anew and that none is to be: Terraform destroys what is tainted.
func (g *growing) check(t *testing.T, when string) {
	t.Helper()
	now := g.place.ids(t)
	for address, id := range g.ids {
		if now[address] != id {
			t.Errorf("%s: %s was %s and is %q", when, address, id, now[address])
		}
	}
	g.ids = now
	statuses, err := g.statuses()
	if err != nil {
		t.Fatal(err)
	}
	for address, status := range statuses {
		if status != "" {
			t.Errorf("%s: %s is %s:\n%s", when, address, status, g.log(t))
		}
	}
}
