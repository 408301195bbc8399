package provider

import (
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// logger writes to Terraform's log.
func logger() *slog.Logger { return slog.New(&logHandler{}) }

type logHandler struct{ attrs []slog.Attr }

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	fields := make(map[string]any, r.NumAttrs()+len(h.attrs))
	add := func(a slog.Attr) bool {
		fields[a.Key] = a.Value.String()
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	if r.Level >= slog.LevelInfo {
		tflog.Info(ctx, r.Message, fields)
	} else {
		tflog.Debug(ctx, r.Message, fields)
	}
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{attrs: append(append([]slog.Attr(nil), h.attrs...), attrs...)}
}

func (h *logHandler) WithGroup(string) slog.Handler { return h }
