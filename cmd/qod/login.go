package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/qod-io/qod/runtime/client"
)

type loginOptions struct {
	user, passwordFile string
	token              bool // read one from standard input
}

func newLogin(a *app) *cobra.Command {
	o := &loginOptions{}
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to a server, for commands with --server",
		Long: "login asks for a user and a password, and keeps the token that --server gives for them in\n" +
			"~/.config/qod/credentials.json ($XDG_CONFIG_HOME), which only its owner can read: with it qod plan --server, and others,\n" +
			"are let in until the token expires. The password may come from QOD_PASSWORD or --password-file, where - is standard\n" +
			"input. With --token-stdin it keeps a personal access token instead. The certificates of --server-ca are remembered\n" +
			"with it. QOD_TOKEN in the environment wins over what is kept.",
		Example: "  qod login --server https://qod.example.com:20900\n  qod login --server https://qod.example.com:20900 --user acme/ana --password-file ana.password\n" +
			"  qod login --server https://qod.example.com:20900 --token-stdin < ci.token",
		Args: noArguments,
	}
	f := cmd.Flags()
	f.StringVar(&o.user, "user", "", "log in as this `USER`: a name, or TENANT/NAME")
	f.StringVar(&o.passwordFile, "password-file", "", "read the password from this `FILE`")
	f.BoolVar(&o.token, "token-stdin", false, "keep the token that is read from standard input")
	cmd.MarkFlagsMutuallyExclusive("token-stdin", "user")
	cmd.MarkFlagsMutuallyExclusive("token-stdin", "password-file")
	completeFiles(cmd, "password-file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.signIn(cmd.Context(), o) }
	return cmd
}

func newLogout(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forget what login keeps of a server",
		Long: "logout takes the token of --server out of the file of credentials. The token itself is good until it expires; a\n" +
			"personal access token ends with qod token revoke, and all that a user has begun with qod session revoke --user.",
		Example: "  qod logout --server https://qod.example.com:20900",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			if a.paths.Server == "" {
				return errNoServer
			}
			kept, err := a.credentials()
			if err != nil {
				return err
			}
			if kept.of(a.paths.Server).Token == "" {
				a.printf("Nothing is kept of %s.\n", a.paths.Server)
				return nil
			}
			delete(kept.Servers, address(a.paths.Server))
			if err := a.keep(kept); err != nil {
				return err
			}
			a.printf("Forgot the token for %s.\n", a.paths.Server)
			return nil
		},
	}
}

var errNoServer = errors.New("which server? Name it by --server or QOD_SERVER, as in https://qod.example.com:20900")

// signIn logs in to the server that is set, and keeps the token.
func (a *app) signIn(ctx context.Context, o *loginOptions) error {
	if a.paths.Server == "" {
		return errNoServer
	}
	kept, err := a.credentials()
	if err != nil {
		return err
	}
	config := client.Config{Server: a.paths.Server, CAFile: a.paths.file(a.paths.ServerCA), Agent: "qod/" + version, Log: a.quiet()}
	if config.CAFile == "" {
		config.CAFile = kept.of(a.paths.Server).CAFile
	}
	if _, err := client.New(config); err != nil { // before anything secret is asked for
		return err
	}
	k := credential{CAFile: config.CAFile}
	if o.token {
		k.Token, err = a.tokenFromInput()
	} else {
		k.Token, err = a.tokenFor(ctx, config, o)
	}
	if err != nil {
		return err
	}
	config.Token = k.Token
	who, err := identity(ctx, config)
	if err != nil {
		return err
	}
	kept.Servers[address(a.paths.Server)] = k
	if err := a.keep(kept); err != nil {
		return err
	}
	a.printf("Logged in at %s as %s.\n", a.paths.Server, who)
	return nil
}

// tokenFromInput reads a token.
func (a *app) tokenFromInput() (string, error) {
	if terminal(a.stdin) {
		return "", errors.New("--token-stdin reads the token from standard input, and that is a terminal: give it as in < ci.token")
	}
	line, err := bufio.NewReader(io.LimitReader(a.stdin, 64<<10)).ReadString('\n')
	if token := strings.TrimSpace(line); token != "" {
		return token, nil
	}
	return "", errors.Join(errors.New("there is no token on standard input"), ignoreEOF(err))
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// tokenFor exchanges a user's password for a token.
func (a *app) tokenFor(ctx context.Context, config client.Config, o *loginOptions) (string, error) {
	user, err := a.asked("User: ", o.user, "--user")
	if err != nil {
		return "", err
	}
	password, err := a.passwordFor(o.passwordFile)
	if err != nil {
		return "", err
	}
	c, err := client.New(config)
	if err != nil {
		return "", err
	}
	defer c.Close()
	var bearer struct {
		Token string `json:"token"`
	}
	err = c.Do(ctx, http.MethodPost, "login", nil, map[string]string{"user": user, "password": password}, &bearer, false)
	if err != nil {
		return "", fmt.Errorf("log in at %s: %w", config.Server, err)
	}
	return bearer.Token, nil
}

// asked is what was given, or what a person answers.
func (a *app) asked(prompt, given, flag string) (string, error) {
	if given != "" {
		return given, nil
	}
	if !terminal(a.stdin) {
		return "", fmt.Errorf("there is no terminal to ask at: give %s", flag)
	}
	fmt.Fprint(a.stderr, prompt)
	line, err := readLine(a.stdin)
	return strings.TrimSpace(line), err
}

// readLine reads no more than a line: what follows it is for who reads next.
func readLine(from io.Reader) (string, error) {
	var line strings.Builder
	b := make([]byte, 1)
	for {
		n, err := from.Read(b)
		if n > 0 && b[0] == '\n' {
			return line.String(), nil
		}
		if n > 0 {
			line.WriteByte(b[0])
		}
		if err != nil {
			return line.String(), ignoreEOF(err)
		}
	}
}

// passwordFor reads a password from a file, from standard input, from QOD_PASSWORD, or from a person, who does not see it.
func (a *app) passwordFor(file string) (string, error) {
	if file == "-" {
		return readLine(a.stdin)
	}
	_, set := a.env("QOD_PASSWORD")
	if file != "" || set || !terminal(a.stdin) {
		return a.password(file)
	}
	fmt.Fprint(a.stderr, "Password: ")
	raw, err := term.ReadPassword(int(a.stdin.(*os.File).Fd()))
	fmt.Fprintln(a.stderr)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return string(raw), nil
}

// identity says in words who a token is of, and until when. A token that does not let in is an error.
func identity(ctx context.Context, config client.Config) (string, error) {
	c, err := client.New(config)
	if err != nil {
		return "", err
	}
	defer c.Close()
	var me struct {
		User     string     `json:"user"`
		Tenant   string     `json:"tenant"`
		ReadOnly bool       `json:"read_only"`
		Expires  *time.Time `json:"expires"`
	}
	if err := c.Do(ctx, http.MethodGet, "me", nil, nil, &me, true); err != nil {
		return "", fmt.Errorf("log in at %s: %w", config.Server, err)
	}
	words := account{name: me.User, tenant: me.Tenant}.String()
	if me.Expires != nil {
		words += ", until " + me.Expires.Local().Format(time.DateTime)
	}
	if me.ReadOnly {
		words += ", to read only"
	}
	return words, nil
}
