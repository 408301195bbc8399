package config

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// encodings are what a string, under the name, or a file, under file and the name, becomes.
func encodings() map[string]func([]byte) string {
	inHex := func(sum []byte) string { return hex.EncodeToString(sum) }
	inBase64 := func(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }
	of256 := func(data []byte) []byte { sum := sha256.Sum256(data); return sum[:] }
	of512 := func(data []byte) []byte { sum := sha512.Sum512(data); return sum[:] }
	return map[string]func([]byte) string{
		"base64":       inBase64,
		"base64sha256": func(data []byte) string { return inBase64(of256(data)) },
		"base64sha512": func(data []byte) string { return inBase64(of512(data)) },
		"md5":          func(data []byte) string { sum := md5.Sum(data); return inHex(sum[:]) },
		"sha1":         func(data []byte) string { sum := sha1.Sum(data); return inHex(sum[:]) },
		"sha256":       func(data []byte) string { return inHex(of256(data)) },
		"sha512":       func(data []byte) string { return inHex(of512(data)) },
	}
}

func hashFunctions() map[string]function.Function {
	all := map[string]function.Function{"base64gzip": ofText(compressed), "uuidv5": uuidFunction()}
	for name, encode := range encodings() {
		if name == "base64" {
			name = "base64encode"
		}
		all[name] = ofText(func(s string) (string, error) { return encode([]byte(s)), nil })
	}
	return all
}

func compressed(s string) (string, error) {
	out := &bytes.Buffer{}
	w := gzip.NewWriter(out)
	if _, err := w.Write([]byte(s)); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}

// uuidFunction makes the UUID of a name, the same each time.
func uuidFunction() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "namespace", Type: cty.String}, {Name: "name", Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			space, err := namespace(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(uuid.NewSHA1(space, []byte(args[1].AsString())).String()), nil
		},
	})
}

func namespace(name string) (uuid.UUID, error) {
	switch name {
	case "dns":
		return uuid.NameSpaceDNS, nil
	case "url":
		return uuid.NameSpaceURL, nil
	case "oid":
		return uuid.NameSpaceOID, nil
	case "x500":
		return uuid.NameSpaceX500, nil
	}
	space, err := uuid.Parse(name)
	if err != nil {
		return uuid.UUID{}, errors.New("want dns, url, oid, x500 or a UUID")
	}
	return space, nil
}
