package config_test

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

// A number that is infinite is an error at the place that makes it, however deep it is inside of a value, and
// also where it would be text at once.
func TestInfiniteNumbers(t *testing.T) {
	const division, infinite = "division by zero", "infinite numbers cannot be used"
	const base = "qod {\n  stack = \"s\"\n}\ntenant \"t\" {}\nvariable \"n\" {\n  type    = number\n  default = 1\n}\n" +
		"variable \"l\" {\n  type    = list(number)\n  default = []\n}\nvariable \"any\" {\n  default = 0\n}\n"
	inHCL := func(text string) map[string]string { return map[string]string{"a.qod.hcl": text} }
	inJSON := func(text string) map[string]string { return map[string]string{"a.qod.json": text} }
	tests := map[string]struct {
		files map[string]string
		given []config.Given
		at    string
		want  string
	}{
		"attribute":       {files: inHCL("user \"a\" {\n  tenant = tenant.t\n  password_version = 1/var.any\n}\n"), at: "a.qod.hcl line 3", want: division},
		"negative":        {files: inHCL("user \"a\" {\n  tenant = tenant.t\n  password_version = -1/0\n}\n"), at: "a.qod.hcl line 3", want: division},
		"remainder":       {files: inHCL("output \"o\" {\n  value = 5 % var.any\n}\n"), at: "a.qod.hcl line 2", want: division},
		"text":            {files: inHCL("tenant \"a\" {\n  display_name = \"x${1/0}\"\n}\n"), at: "a.qod.hcl line 2", want: division},
		"text as number":  {files: inHCL("user \"a\" {\n  tenant = tenant.t\n  password_version = \"inf\"\n}\n"), at: "a.qod.hcl line 3", want: "out of range"},
		"nested block":    {files: inHCL("pool \"a\" {\n  tenant_db = \"x\"\n  tenant = tenant.t\n  nodes {\n    dual = 1/0\n  }\n}\n"), at: "a.qod.hcl line 5", want: division},
		"dynamic block":   {files: inHCL("pool \"a\" {\n  tenant_db = \"x\"\n  tenant = tenant.t\n  dynamic \"nodes\" {\n    for_each = [0]\n    content {\n      dual = 1/nodes.value\n    }\n  }\n}\n"), at: "a.qod.hcl line 7", want: division},
		"local":           {files: inHCL("locals {\n  a = { b = [1, { c = 1/0 }] }\n}\n"), at: "a.qod.hcl line 2", want: division},
		"output":          {files: inHCL("output \"o\" {\n  value = { a = [1, { b = -\"Inf\" }] }\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"sum":             {files: inHCL("output \"o\" {\n  value = 1 + \"inf\"\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"growth":          {files: inHCL("output \"o\" {\n  value = \"${1e1000 * 1e1000}\"\n}\n"), at: "a.qod.hcl line 2", want: "too many digits"},
		"condition":       {files: inHCL("output \"o\" {\n  value = 1/0 > 2 ? 1 : 2\n}\n"), at: "a.qod.hcl line 2", want: division},
		"for":             {files: inHCL("output \"o\" {\n  value = [for x in [1, 0] : 1/x]\n}\n"), at: "a.qod.hcl line 2", want: division},
		"for_each":        {files: inHCL("tenant \"a\" {\n  for_each = toset([\"a${1/0}\"])\n}\n"), at: "a.qod.hcl line 2", want: division},
		"function":        {files: inHCL("output \"o\" {\n  value = \"${max(\"inf\", 1)}\"\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"tonumber":        {files: inHCL("output \"o\" {\n  value = \"${tonumber(\"-Inf\")}\"\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"convert":         {files: inHCL("output \"o\" {\n  value = \"${convert([\"inf\"], list(number))[0]}\"\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"lookup":          {files: inHCL("output \"o\" {\n  value = lookup(tomap({ a = 1 }), \"b\", \"inf\")\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"yamldecode":      {files: inHCL("output \"o\" {\n  value = yamldecode(\"a: [.inf]\")\n}\n"), at: "a.qod.hcl line 2", want: infinite},
		"template":        {files: inHCL("output \"o\" {\n  value = templatestring(\"x$${1/a}\", { a = 0 })\n}\n"), at: "a.qod.hcl line 2", want: division},
		"default":         {files: inHCL("variable \"x\" {\n  default = [1/0]\n}\n"), at: "a.qod.hcl line 2", want: division},
		"typed default":   {files: inHCL("variable \"x\" {\n  type = list(number)\n  default = [\"inf\"]\n}\n"), at: "a.qod.hcl line 3", want: infinite},
		"optional":        {files: inHCL("variable \"x\" {\n  type = object({ a = optional(number, \"inf\") })\n  default = {}\n}\n"), at: "a.qod.hcl line 3", want: infinite},
		"validation":      {files: inHCL("variable \"x\" {\n  default = 0\n  validation {\n    condition = 1/var.x > 0\n    error_message = \"\"\n  }\n}\n"), at: "a.qod.hcl line 4", want: division},
		"module":          {files: map[string]string{"a.qod.hcl": "module \"m\" {\n  source = \"./m\"\n  x = \"inf\"\n}\n", "m/a.qod.hcl": "variable \"x\" {\n  type = number\n}\n"}, at: "a.qod.hcl line 3", want: infinite},
		"import":          {files: inHCL("import {\n  to = tenant.t\n  id = \"a${1/0}\"\n}\n"), at: "a.qod.hcl line 3", want: division},
		"JSON":            {files: inJSON("{\"locals\": {\n\"a\": \"${1/0}\"}}"), at: "a.qod.json line 2", want: division},
		"JSON text":       {files: inJSON("{\"locals\": {\n\"a\": [1, {\"b\": \"x${1/0}\"}]}}"), at: "a.qod.json line 2", want: division},
		"JSON key":        {files: inJSON("{\"locals\": {\n\"a\": {\"x${1/0}\": 1}}}"), at: "a.qod.json line 2", want: division},
		"JSON attribute":  {files: inJSON("{\"tenant\": {\"a\": {\n\"display_name\": \"x${1/0}\"}}}"), at: "a.qod.json line 2", want: division},
		"JSON block":      {files: inJSON("{\"role\": {\"a\": {\"tenant\": \"t\", \"permission\": [\n{\"schema\": \"x${1/0}\", \"privileges\": [\"all\"]}]}}}"), at: "a.qod.json line 2", want: division},
		"JSON dynamic":    {files: inJSON("{\"role\": {\"a\": {\"tenant\": \"t\", \"dynamic\": {\"permission\": {\"for_each\": [0], \"content\": {\n\"schema\": \"x${1/permission.value}\", \"privileges\": [\"all\"]}}}}}}"), at: "a.qod.json line 2", want: division},
		"JSON output":     {files: inJSON("{\"output\": {\"o\": {\n\"value\": \"${[-\\\"inf\\\"]}\"}}}"), at: "a.qod.json line 2", want: infinite},
		"JSON default":    {files: inJSON("{\"variable\": {\"x\": {\n\"default\": \"x${1/0}\"}}}"), at: "a.qod.json line 2", want: division},
		"var file":        {files: map[string]string{"a.auto.qodvars.hcl": "any = [1/0]\n"}, at: "a.auto.qodvars.hcl line 1", want: division},
		"given text":      {given: []config.Given{{Name: "n", Value: "-inf"}}, want: infinite},
		"given list":      {given: []config.Given{{Name: "l", Value: "[1/0]"}}, want: division},
		"given list text": {given: []config.Given{{Name: "l", Value: "[\"inf\"]"}}, want: infinite},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := complaints(t, base, tt.files, tt.given)
			if !strings.Contains(got, tt.at) || !strings.Contains(got, tt.want) || strings.Contains(got, "anic") {
				t.Errorf("want %q and %q, got %s", tt.at, tt.want, got)
			}
		})
	}
}

// The console refuses what a configuration does.
func TestInfiniteNumbersInConsole(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, ".", "main.qod.hcl", "qod {\n  stack = \"s\"\n}\nvariable \"zero\" {\n  default   = 0\n  sensitive = true\n}\n")
	c, _ := config.Load(".")
	d, diags := c.Evaluate(config.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for expr, want := range map[string]string{
		"1/0": "division by zero", "[[1 % 0]]": "division by zero", "\"x${1/0}\"": "division by zero",
		"[-\"inf\"]": "infinite numbers cannot be used", "1/var.zero": "details are not shown",
		"true ? yamldecode(\".inf\") : 1": "infinite numbers cannot be used",
	} {
		v, diags := d.Value(expr)
		if got := render(t, diags, d.Files()); !strings.Contains(got, want) {
			t.Errorf("%s is %#v, and says %s", expr, v, got)
		}
	}
	if v, diags := d.Value("[7 / 2, -7 % 4, 0 / 5, 1e30 * 2 - 1]"); diags.HasErrors() || config.FormatValue(v) != "[\n  3.5,\n  -3,\n  0,\n  1999999999999999999999999999999,\n]" {
		t.Errorf("%s, %v", config.FormatValue(v), diags)
	}
}
