package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxClientMessage bounds one message of a result, in bytes.
const maxClientMessage = 256 << 20

type sqlOptions struct {
	user, passwordFile, tenant, pool, address, ca, format, file string
}

func newSQL(a *app) *cobra.Command {
	o := &sqlOptions{}
	cmd := &cobra.Command{
		Use:   "sql [STATEMENT]",
		Short: "Run statements through Flight SQL",
		Long: "sql logs in to the serve of this directory, or to --address, runs one statement and prints its rows. Without one it\n" +
			"reads statements, each ended by a semicolon, from the terminal, from its input or from a file, all in one session.\n" +
			"\\? lists its commands. Away from a terminal the first error ends it. The password comes from --password-file or\n" +
			"from QOD_PASSWORD.",
		Example: "  QOD_PASSWORD=… qod sql --user ana@acme/bi 'SELECT count(*) FROM orders'\n" +
			"  qod sql --user ana --tenant acme --pool bi --password-file ana.password --format csv 'FROM nation'\n" +
			"  qod sql --user ana@acme/bi -f orders.sql",
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&o.user, "user", "", "log in as this `USER`: NAME, or NAME@TENANT/POOL")
	f.StringVar(&o.passwordFile, "password-file", "", "read the password from this `FILE`")
	f.StringVar(&o.tenant, "tenant", "", tenantUsage)
	f.StringVar(&o.pool, "pool", "", "`NAME` of the pool, where --user does not say it")
	f.StringVar(&o.address, "address", "", "`HOST:PORT` of another serve")
	f.StringVar(&o.ca, "ca-file", "", "trust the certificate in this `FILE`, PEM; default: the one this directory's serve made, or the system's")
	f.StringVar(&o.format, "format", "table", "print rows in this `FORMAT`: table, csv or json")
	f.StringVarP(&o.file, "file", "f", "", "run the statements in this `FILE`")
	completeChoices(cmd, "format", "table", "csv", "json")
	completeFiles(cmd, "file", "password-file", "ca-file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 1 && o.file != "":
			return errors.New("give a statement or --file, not both")
		case len(args) == 1:
			return a.sql(cmd.Context(), o, args[0])
		}
		return a.sqlShell(cmd.Context(), o)
	}
	return cmd
}

func (a *app) sql(ctx context.Context, o *sqlOptions, statement string) error {
	s, err := a.login(ctx, o)
	if err != nil {
		return err
	}
	defer s.client.Close()
	if err := s.run(s.bear(ctx), a.stdout, statement); err != nil {
		return err
	}
	_, err = s.client.CloseSession(s.bear(ctx), &flight.CloseSessionRequest{})
	return told(err)
}

// sqlSession is a login at a serve.
type sqlSession struct {
	client *flightsql.Client
	write  func(io.Writer, *flight.Reader) error
	header metadata.MD // what every call says: who it is
}

func (s *sqlSession) bear(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, s.header)
}

func (a *app) login(ctx context.Context, o *sqlOptions) (*sqlSession, error) {
	write, ok := map[string]func(io.Writer, *flight.Reader) error{"table": writeTable, "csv": writeCSV, "json": writeJSON}[o.format]
	if !ok {
		return nil, fmt.Errorf("--format %q: want table, csv or json", o.format)
	}
	if o.user == "" {
		return nil, errors.New("--user is needed, as in ana@acme/bi")
	}
	password, err := a.password(o.passwordFile)
	if err != nil {
		return nil, err
	}
	client, err := a.dial(o)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"tenant": o.tenant, "pool": o.pool} {
		if value != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
	}
	if ctx, err = client.Client.AuthenticateBasicToken(ctx, o.user, password); err != nil {
		return nil, errors.Join(told(err), client.Close())
	}
	header, _ := metadata.FromOutgoingContext(ctx)
	return &sqlSession{client: client, write: write, header: header}, nil
}

// run runs one statement and prints its rows.
func (s *sqlSession) run(ctx context.Context, to io.Writer, statement string) error {
	info, err := s.client.Execute(ctx, statement)
	if err != nil {
		return told(err)
	}
	for _, endpoint := range info.GetEndpoint() {
		r, err := s.client.DoGet(ctx, endpoint.GetTicket())
		if err != nil {
			return told(err)
		}
		err = s.write(to, r)
		r.Release()
		if err != nil {
			return told(err)
		}
	}
	return nil
}

// told returns what the server said, without the words of the transport.
func told(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return fmt.Errorf("%s: %s", strings.ToLower(s.Code().String()), s.Message())
	}
	return err
}

func (a *app) password(file string) (string, error) {
	if file != "" {
		raw, err := os.ReadFile(a.paths.file(file))
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		return strings.TrimRight(string(raw), "\r\n"), nil
	}
	if password, ok := a.env("QOD_PASSWORD"); ok {
		return password, nil
	}
	return "", errors.New("no password: set QOD_PASSWORD or give --password-file")
}

func (a *app) dial(o *sqlOptions) (*flightsql.Client, error) {
	address, ca := o.address, a.paths.file(o.ca)
	if address == "" {
		serves := a.paths.serves()
		if len(serves) == 0 {
			return nil, errors.New("no serve runs for this directory: start qod serve, or give --address")
		}
		address = serves[0].Flight
		if ca == "" && a.paths.TLSCertFile == "" {
			ca = a.paths.in("tls", "edge.crt")
		} else if ca == "" {
			ca = a.paths.TLSCertFile
		}
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificate: %s holds none", ca)
		}
	}
	client, err := flightsql.NewClient(address, nil, nil,
		grpc.WithTransportCredentials(credentials.NewTLS(trust)), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxClientMessage)))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return client, nil
}

func names(s *arrow.Schema) []string {
	var out []string
	for _, f := range s.Fields() {
		out = append(out, f.Name)
	}
	return out
}

func writeTable(w io.Writer, r *flight.Reader) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(names(r.Schema()), "\t"))
	rows, err := eachRow(r, func(cells []string, _ []bool) error {
		_, err := fmt.Fprintln(table, strings.Join(cells, "\t"))
		return err
	})
	if err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "(%s)\n", plural(rows, "row"))
	return err
}

func writeCSV(w io.Writer, r *flight.Reader) error {
	out := csv.NewWriter(w)
	if err := out.Write(names(r.Schema())); err != nil {
		return err
	}
	_, err := eachRow(r, func(cells []string, null []bool) error {
		for i := range cells {
			if null[i] {
				cells[i] = ""
			}
		}
		return out.Write(cells)
	})
	out.Flush()
	return errors.Join(err, out.Error())
}

// writeJSON prints one object per row and line.
func writeJSON(w io.Writer, r *flight.Reader) error {
	for r.Next() {
		if err := array.RecordToJSON(r.RecordBatch(), w); err != nil {
			return err
		}
	}
	return ended(r)
}

func eachRow(r *flight.Reader, visit func(cells []string, null []bool) error) (int64, error) {
	var rows int64
	for r.Next() {
		batch := r.RecordBatch()
		cells, null := make([]string, batch.NumCols()), make([]bool, batch.NumCols())
		for row := range int(batch.NumRows()) {
			for col := range cells {
				cells[col], null[col] = cell(batch.Column(col), row)
			}
			if err := visit(cells, null); err != nil {
				return rows, err
			}
			rows++
		}
	}
	return rows, ended(r)
}

// cell prints a value. Arrow prints decimals as floating-point numbers; here they keep all their digits.
func cell(column arrow.Array, row int) (text string, null bool) {
	if column.IsNull(row) {
		return "NULL", true
	}
	if d, ok := column.(*array.Decimal128); ok {
		return d.Value(row).ToString(d.DataType().(*arrow.Decimal128Type).Scale), false
	}
	return column.ValueStr(row), false
}

func ended(r *flight.Reader) error {
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
