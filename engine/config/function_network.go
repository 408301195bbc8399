package config

import (
	"errors"
	"math/big"
	"net"

	"github.com/apparentlymart/go-cidr/cidr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

// maxNewBits is by how many bits one call may extend a prefix, as in Terraform.
const maxNewBits = 32

func networkFunctions() map[string]function.Function {
	prefix := function.Parameter{Name: "prefix", Type: cty.String}
	number := func(name string) function.Parameter { return function.Parameter{Name: name, Type: cty.Number} }
	return map[string]function.Function{
		"cidrhost": ofNetwork([]function.Parameter{prefix, number("hostnum")}, hostAddress),
		"cidrnetmask": ofNetwork([]function.Parameter{prefix}, func(network *net.IPNet, _ []cty.Value) (string, error) {
			if network.IP.To4() == nil {
				return "", errors.New("only IPv4 networks have a netmask")
			}
			return net.IP(network.Mask).String(), nil
		}),
		"cidrsubnet":  ofNetwork([]function.Parameter{prefix, number("newbits"), number("netnum")}, subnet),
		"cidrsubnets": subnetsFunction(prefix),
	}
}

// ofNetwork is a function of a network, its first argument, that gives a string.
func ofNetwork(params []function.Parameter, f func(*net.IPNet, []cty.Value) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: params, Type: function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			network, err := parseNetwork(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			out, err := f(network, args[1:])
			if err != nil {
				return cty.NilVal, err
			}
			return cty.StringVal(out), nil
		},
	})
}

func parseNetwork(v cty.Value) (*net.IPNet, error) {
	_, network, err := net.ParseCIDR(v.AsString())
	if err != nil {
		return nil, function.NewArgErrorf(0, "want a network such as 10.0.0.0/8 or fd00::/16")
	}
	return network, nil
}

func hostAddress(network *net.IPNet, args []cty.Value) (string, error) {
	number, err := wholeNumber(args[0], 1)
	if err != nil {
		return "", err
	}
	ip, err := cidr.HostBig(network, number)
	if err != nil {
		return "", err
	}
	return ip.String(), nil
}

func subnet(network *net.IPNet, args []cty.Value) (string, error) {
	newBits, err := extension(args[0], 1)
	if err != nil {
		return "", err
	}
	number, err := wholeNumber(args[1], 2)
	if err != nil {
		return "", err
	}
	if number.Sign() < 0 {
		return "", function.NewArgErrorf(2, "want a number from 0")
	}
	out, err := cidr.SubnetBig(network, newBits, number)
	if err != nil {
		return "", err
	}
	return out.String(), nil
}

// wholeNumber reads argument i. No network has more addresses than 128 bits count.
func wholeNumber(v cty.Value, i int) (*big.Int, error) {
	f := v.AsBigFloat()
	if !f.IsInt() || f.MantExp(nil) > 128 {
		return nil, function.NewArgErrorf(i, "want a whole number that counts addresses")
	}
	n, _ := f.Int(nil)
	return n, nil
}

func extension(v cty.Value, i int) (int, error) {
	var bits int
	if err := gocty.FromCtyValue(v, &bits); err != nil || bits < 0 || bits > maxNewBits {
		return 0, function.NewArgErrorf(i, "want a number of bits from 0 to %d", maxNewBits)
	}
	return bits, nil
}

// subnetsFunction cuts networks of several sizes from one, one after the other.
func subnetsFunction(prefix function.Parameter) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{prefix},
		VarParam: &function.Parameter{Name: "newbits", Type: cty.Number},
		Type:     function.StaticReturnType(cty.List(cty.String)), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			network, err := parseNetwork(args[0])
			if err != nil {
				return cty.NilVal, err
			}
			var out []cty.Value
			var current *net.IPNet
			for i, arg := range args[1:] {
				bits, err := extension(arg, i+1)
				if err != nil {
					return cty.NilVal, err
				}
				if current, err = nextSubnet(network, current, bits); err != nil {
					return cty.NilVal, function.NewArgError(i+1, err)
				}
				out = append(out, cty.StringVal(current.String()))
			}
			if len(out) == 0 {
				return cty.ListValEmpty(cty.String), nil
			}
			return cty.ListVal(out), nil
		},
	})
}

// nextSubnet returns the network after current, or the first one for a nil current.
func nextSubnet(network, current *net.IPNet, bits int) (*net.IPNet, error) {
	have, most := network.Mask.Size()
	length := have + bits
	switch {
	case bits < 1:
		return nil, errors.New("a network inside another is smaller by at least one bit")
	case length > most:
		return nil, errors.New("the network has too few addresses for that")
	case current == nil:
		return &net.IPNet{IP: network.IP, Mask: net.CIDRMask(length, most)}, nil
	}
	next, over := cidr.NextSubnet(current, length)
	if over || !network.Contains(next.IP) {
		return nil, errors.New("no addresses are left in the network for it")
	}
	return next, nil
}
