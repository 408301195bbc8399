package config

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// values has calls and what Terraform documents of them, both as expressions.
func values() map[string]string {
	return map[string]string{
		`abs(-12.4)`: `12.4`, `ceil(5.1)`: `6`, `floor(4.9)`: `4`, `log(16, 2)`: `4`, `max(12, 54, 3)`: `54`,
		`min(12, 54, 3)`: `3`, `parseint("FF", 16)`: `255`, `parseint("1011111011101111", 2)`: `48879`,
		`pow(3, 2)`: `9`, `pow(4, 0)`: `1`, `signum(-13)`: `-1`, `sum([10, 13, 6, 4.5])`: `33.5`,

		`chomp("hello\n")`: `"hello"`, `endswith("hello world", "world")`: `true`, `startswith("hello", "world")`: `false`,
		`strcontains("hello world", "wor")`: `true`, `format("Hello, %s!", "Ander")`: `"Hello, Ander!"`,
		`format("%4.1f|%-5s|%05d", 3.14, "a", 42)`: `" 3.1|a    |00042"`, `format("%q", "a\"b")`: `"\"a\\\"b\""`,
		`formatlist("%s-%s", "a", ["x", "y"])`: `["a-x", "a-y"]`, `indent(2, "a\nb")`: `"a\n  b"`,
		`join(", ", ["foo", "bar"])`: `"foo, bar"`, `lower("HELLO")`: `"hello"`, `upper("hello")`: `"HELLO"`,
		`title("hello world")`: `"Hello World"`, `regex("[a-z]+", "53453453.345345aaabbbccc23454")`: `"aaabbbccc"`,
		`regex("(\\d\\d\\d\\d)-(\\d\\d)", "2019-02-01")`: `["2019", "02"]`, `regexall("[a-z]+", "1a2b")`: `["a", "b"]`,
		`replace("1 + 2 + 3", "+", "-")`: `"1 - 2 - 3"`, `replace("hello world", "/w.*d/", "everybody")`: `"hello everybody"`,
		`replace("ab", "/(a)(b)/", "$2$1")`: `"ba"`, `split(",", "foo,bar,baz")`: `["foo", "bar", "baz"]`, `split(",", "")`: `[""]`,
		`strlen("👾🕹️")`: `2`, `strrev("hello")`: `"olleh"`, `substr("hello world", 1, 4)`: `"ello"`,
		`substr("hello world", -5, -1)`: `"world"`, `trim("?!hello?!", "!?")`: `"hello"`,
		`trimprefix("helloworld", "hello")`: `"world"`, `trimsuffix("helloworld", "world")`: `"hello"`,
		`trimspace("  hello\n\n")`: `"hello"`, `urlencode("Hello World!")`: `"Hello+World%21"`,

		`alltrue(["true", true])`: `true`, `alltrue([true, false])`: `false`, `alltrue([])`: `true`,
		`anytrue(["true"])`: `true`, `anytrue([])`: `false`, `chunklist(["a", "b", "c"], 2)`: `[["a", "b"], ["c"]]`,
		`coalesce("", "b")`: `"b"`, `coalescelist([], ["c"])`: `["c"]`, `compact(["a", "", null, "b"])`: `["a", "b"]`,
		`concat(["a", ""], ["b"])`: `["a", "", "b"]`, `contains(["a", "b"], "a")`: `true`,
		`distinct(["a", "b", "a"])`: `["a", "b"]`, `element(["a", "b", "c"], 3)`: `"a"`, `element(["a", "b"], -1)`: `"b"`,
		`flatten([["a", "b"], [], ["c"]])`: `["a", "b", "c"]`, `index(["a", "b"], "b")`: `1`, `keys({ b = 1, a = 2 })`: `["a", "b"]`,
		`length("👾")`: `1`, `length({ a = 1 })`: `1`, `lookup({ a = "ay" }, "c", "what?")`: `"what?"`,
		`matchkeys(["i-123", "i-abc", "i-def"], ["us-west", "us-east", "us-east"], ["us-east"])`: `["i-abc", "i-def"]`,
		`matchkeys(["a"], ["x"], ["y"])`: `[]`, `merge({ a = 1, b = 2 }, { b = 3 })`: `{ a = 1, b = 3 }`,
		`one([])`: `null`, `one(["a"])`: `"a"`, `range(3)`: `[0, 1, 2]`, `range(4, 1)`: `[4, 3, 2]`, `range(1, 8, 2)`: `[1, 3, 5, 7]`,
		`reverse([1, 2, 3])`: `[3, 2, 1]`, `setintersection(["a", "b"], ["b", "c"])`: `["b"]`,
		`setproduct(["a", "b"], ["x"])`: `[["a", "x"], ["b", "x"]]`, `setsubtract(["a", "b", "c"], ["a", "c"])`: `["b"]`,
		`setunion(["a"], ["b"])`: `["a", "b"]`, `slice(["a", "b", "c", "d"], 1, 3)`: `["b", "c"]`, `sort(["e", "d", "a"])`: `["a", "d", "e"]`,
		`transpose({ a = ["1", "2"], b = ["2", "3"] })`: `{ "1" = ["a"], "2" = ["a", "b"], "3" = ["b"] }`,
		`values({ b = 3, a = 1 })`:                      `[1, 3]`, `zipmap(["a", "b"], [1, 2])`: `{ a = 1, b = 2 }`,

		`base64decode("SGVsbG8gV29ybGQ=")`: `"Hello World"`, `base64encode("Hello World")`: `"SGVsbG8gV29ybGQ="`,
		`csvdecode("a,b\n1,2\n")`: `[{ a = "1", b = "2" }]`, `jsondecode("{\"hello\": \"world\"}")`: `{ hello = "world" }`,
		`jsonencode({ hello = "<world>" })`:       `"{\"hello\":\"\\u003cworld\\u003e\"}"`,
		`yamldecode("{a: &foo [1, 2], b: *foo}")`: `{ a = [1, 2], b = [1, 2] }`, `yamlencode({ a = "b" })`: `"\"a\": \"b\"\n"`,

		`md5("hello world")`: `"5eb63bbbe01eeed093cb22bb8f5acdc3"`, `sha1("hello world")`: `"2aae6c35c94fcfb415dbe95f408b9ce91ee846ed"`,
		`sha256("hello world")`:                 `"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"`,
		`sha512("")`:                            `"cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"`,
		`base64sha256("hello world")`:           `"uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="`,
		`base64sha512("")`:                      `"z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="`,
		`uuidv5("dns", "www.terraform.io")`:     `"a5008fae-b28c-5ba5-96cd-82b4c53552d6"`,
		`uuidv5("url", "https://terraform.io")`: `uuidv5("6ba7b811-9dad-11d1-80b4-00c04fd430c8", "https://terraform.io")`,

		`cidrhost("10.12.112.0/20", 16)`: `"10.12.112.16"`, `cidrhost("10.12.112.0/20", 268)`: `"10.12.113.12"`,
		`cidrhost("fd00:fd12:3456:7890:00a2::/72", 34)`: `"fd00:fd12:3456:7890::22"`, `cidrhost("10.1.2.240/28", -1)`: `"10.1.2.255"`,
		`cidrnetmask("172.16.0.0/12")`: `"255.240.0.0"`, `cidrsubnet("172.16.0.0/12", 4, 2)`: `"172.18.0.0/16"`,
		`cidrsubnet("10.1.2.0/24", 4, 15)`: `"10.1.2.240/28"`, `cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)`: `"fd00:fd12:3456:7800:a200::/72"`,
		`cidrsubnets("10.1.0.0/16", 4, 4, 8, 4)`:                  `["10.1.0.0/20", "10.1.16.0/20", "10.1.32.0/24", "10.1.48.0/20"]`,
		`cidrsubnets("fd00:fd12:3456:7890::/56", 16, 16, 16, 32)`: `["fd00:fd12:3456:7800::/72", "fd00:fd12:3456:7800:100::/72", "fd00:fd12:3456:7800:200::/72", "fd00:fd12:3456:7800:300::/88"]`,

		`formatdate("DD MMM YYYY hh:mm ZZZ", "2018-01-02T23:12:01Z")`: `"02 Jan 2018 23:12 UTC"`,
		`timeadd("2017-11-22T00:00:00Z", "10m")`:                      `"2017-11-22T00:10:00Z"`, `timecmp("2017-11-22T00:00:00Z", "2017-11-22T00:00:00Z")`: `0`,
		`timecmp("2017-11-22T00:00:00Z", "2017-11-22T01:00:00Z")`: `-1`, `timecmp("2017-11-22T01:00:00Z", "2017-11-22T00:00:00-01:00")`: `0`,

		`basename("foo/bar/baz.txt")`: `"baz.txt"`, `dirname("foo/bar/baz.txt")`: `"foo/bar"`,
		`tobool("true")`: `true`, `tonumber("1")`: `1`, `tostring(1)`: `"1"`, `toset(["b", "a", "b"])`: `["a", "b"]`,
		`tolist(["a", 1])`: `["a", "1"]`, `tomap({ a = "x", b = true })`: `{ a = "x", b = "true" }`, `can(tonumber("a"))`: `false`,
		`try(tonumber("a"), "b")`: `"b"`, `issensitive(sensitive("a"))`: `true`, `nonsensitive(sensitive("a"))`: `"a"`,
	}
}

// own has calls that Terraform has not, or not everywhere.
func own() map[string]string {
	return map[string]string{
		`convert({ a = "1" }, object({ a = number }))`: `{ a = 1 }`, `convert(["a", "a"], set(string))`: `["a"]`,
		`convert(null, string)`: `null`, `type({ a = 1, b = ["x"] })`: `"object({a=number,b=tuple([string])})"`,
		`type(toset(["a"]))`: `"set(string)"`, `type(null)`: `"any"`, `plantimestamp()`: `"2030-01-02T03:04:05Z"`,
		"templatestring(\"$${upper(x)}, $${join(\\\"-\\\", y)}\", { x = \"a\", y = [\"b\", \"c\"] })": `"A, b-c"`,
		`templatestring("%%{for a in y}<$${a}>%%{endfor}", { y = ["b", "c"] })`:                       `"<b><c>"`,
		`templatefile("a.tpl", { x = 1 })`:                                                            `"1"`, `filebase64("a.txt")`: `"YQ=="`, `filesha256("a.txt")`: `sha256("a")`,
		`filemd5("a.txt")`: `md5("a")`, `filesha1("a.txt")`: `sha1("a")`, `filesha512("a.txt")`: `sha512("a")`,
		`filebase64sha256("a.txt")`: `base64sha256("a")`, `filebase64sha512("a.txt")`: `base64sha512("a")`,
		`file("a.txt")`: `"a"`, `fileexists("b.txt")`: `false`, `fileset(".", "*.txt")`: `["a.txt"]`,
		`urldecode("Hello+World%21")`: `"Hello World!"`, `hasindex(["a"], 1)`: `false`,
		`length(base64gzip("hello")) > 0`: `true`, `base64gzip("hello") == base64gzip("hello")`: `true`,
		`jsonencode(9007199254740993)`: `"9007199254740993"`, `ephemeralasnull("a")`: `"a"`, `issensitive(templatestring(sensitive("a"), {}))`: `true`,
	}
}

func TestFunctionValues(t *testing.T) {
	ctx := functionContext(t)
	tested := map[string]bool{}
	for _, table := range []map[string]string{values(), own()} {
		for call, want := range table {
			name, _, _ := strings.Cut(call, "(")
			tested[name] = true
			t.Run(call, func(t *testing.T) {
				if got, want := asJSON(t, ctx, call), asJSON(t, ctx, want); got != want {
					t.Errorf("%s is %s, want %s", call, got, want)
				}
			})
		}
	}
	for name := range examples() {
		if !tested[name] && name != "sensitive" {
			t.Errorf("no value of %s is tested", name)
		}
	}
}

func asJSON(t *testing.T, ctx *hcl.EvalContext, text string) string {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, diags := expr.Value(ctx)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", text, diags)
	}
	v, _ = v.UnmarkDeep()
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// What a function says of a call that it does not take.
func TestFunctionErrors(t *testing.T) {
	ctx := functionContext(t)
	tests := map[string]string{
		`timestamp()`: "equal configurations must give equal plans; plantimestamp() is one time", `uuid()`: "uuidv5(namespace, name)",
		`bcrypt(sensitive("a"))`: "password_verifier", `abspath(".")`: "depends on the machine", `pathexpand("~")`: "depends on the machine",
		`cidrhost("10.0.0.0/33", 1)`: "want a network such as 10.0.0.0/8", `cidrhost("10.0.0.0/30", 4)`: "prefix of 30 does not accommodate a host numbered 4",
		`cidrnetmask("fd00::/16")`: "only IPv4", `cidrsubnet("10.0.0.0/31", 2, 0)`: "insufficient address space", `cidrsubnet("10.0.0.0/8", 8, -1)`: "want a number from 0",
		`cidrsubnets("10.0.0.0/31", 1, 1, 1)`: "no addresses are left", `cidrsubnets("10.0.0.0/8", 0)`: "smaller by at least one bit",
		`cidrsubnets("10.0.0.0/30", 3)`: "too few addresses", `cidrhost("10.0.0.0/8", 1e300)`: "whole number that counts addresses",
		`uuidv5("web", "a")`: "want dns, url, oid, x500 or a UUID", `timecmp("now", "now")`: "want a time such as",
		`matchkeys(["a"], ["x", "y"], ["x"])`: "as many keys as values", `matchkeys(["a"], [true], [{}])`: "of another type",
		`transpose({ a = null })`: "a list in it is null", `transpose({ a = [null] })`: "holds a null",
		`filesha256("b.txt")`: "no such file", `filebase64("..")`: "outside the directory of this file", `file(".")`: "is not a file",
		`templatestring("$${x}", {})`: `the template uses "x"`, `templatestring("$${timestamp()}", {})`: "equal plans",
		`templatestring("$${templatestring(\"a\", {})}", {})`: "no function named", `convert("a", number)`: "a number is required",
		`convert("a", sting)`: `keyword "sting" is not`, `one(["a", "b"])`: "at most one", `sum([null])`: "null", `merge(null, "a")`: "want a map or an object", `index(["a"], "b")`: "does not hold",
	}
	for call, want := range tests {
		t.Run(call, func(t *testing.T) {
			if got := callError(t, ctx, call); !strings.Contains(got, want) {
				t.Errorf("%s says %q, want %q", call, got, want)
			}
		})
	}
	without := &hcl.EvalContext{Functions: functions(t.TempDir(), time.Time{})}
	if got := callError(t, without, "plantimestamp()"); !strings.Contains(got, "no plan here") {
		t.Errorf("without a time plantimestamp says %q", got)
	}
}

func callError(t *testing.T, ctx *hcl.EvalContext, text string) string {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte(text), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, diags := expr.Value(ctx)
	if !diags.HasErrors() {
		t.Fatalf("%s gives %#v", text, v)
	}
	return guard(diags, nil, ctx, expr).Error()
}

// No call may take much memory: these would take gigabytes.
func TestFunctionsAreBounded(t *testing.T) {
	ctx := functionContext(t).NewChild()
	long := strings.Repeat("ab\n", 1<<20)
	shared := cty.TupleVal([]cty.Value{cty.StringVal("x")})
	for range 18 {
		shared = cty.TupleVal([]cty.Value{shared, shared})
	}
	bomb := "a: &a [x]\n"
	for c := 'b'; c < 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+", ", 9) + "]\n"
	}
	ctx.Variables = map[string]cty.Value{
		"long": cty.StringVal(long), "shared": shared, "bomb": cty.StringVal(bomb), "deep": cty.StringVal(strings.Repeat("[", 1<<20)),
		"dashes": cty.StringVal(strings.Repeat("- ", 100_000) + "a"), "ones": cty.StringVal("[1" + strings.Repeat(",1", 1<<20) + "]"),
	}
	calls := []string{
		`range(1e9)`, `format("%999999999s", "a")`, `format("%.999999999f", 1)`, `format("%d", 1e600000)`,
		`formatlist("%9999999s", range(100))`, `format(join("", [for i in range(1000) : "%[1]s"]), long)`, `indent(1e9, "a\nb")`,
		`indent(9999, long)`, `indent(-1, "a\nb")`, `join(long, range(1000))`, `replace(long, "", long)`, `replace(long, "/$/", long)`,
		`replace("aaaaaaaaaa", "a", long)`, `replace(join("", [for i in range(9) : long]), "/(.*)/", "$1$1$1$1")`,
		`setproduct(range(1000), range(1000), range(1000))`, `split("", long)`, `split("b", "b${long}")`, `regexall("", long)`,
		`jsonencode(shared)`, `yamlencode(shared)`, `templatestring("$${jsonencode(x)}", { x = shared })`, `jsondecode(deep)`,
		`yamldecode(deep)`, `yamldecode(bomb)`, `yamldecode(dashes)`, `jsondecode(ones)`, `csvdecode("a\n${long}")`, `jsondecode("1e600000000")`,
		`tonumber("1e600000000")`, `parseint(long, 36)`, `ceil(1e600000)`, `yamldecode("a: 1e600000000")`, `jsonencode(1e600000)`,
	}
	for _, text := range calls {
		t.Run(text, func(t *testing.T) {
			expr, diags := hclsyntax.ParseExpression([]byte(text), "test", hcl.InitialPos)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			before := allocated()
			_, diags = expr.Value(ctx)
			if used := allocated() - before; used > 400<<20 || !diags.HasErrors() {
				t.Errorf("%s allocated %d MiB, and has errors: %t", text, used>>20, diags.HasErrors())
			}
		})
	}
}

// allocated counts all bytes ever allocated: more than are in use at any time.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
