package edge

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec below wraps it
	"google.golang.org/grpc/mem"
)

// frame is a gRPC message that nobody decodes. It holds one reference to its buffers.
type frame struct{ b mem.BufferSlice }

// share returns a frame with a reference of its own.
func (f *frame) share() *frame {
	f.b.Ref()
	return &frame{b: f.b}
}

// free gives the reference back, unless gRPC took it.
func (f *frame) free() {
	f.b.Free()
	f.b = nil
}

// codec passes frames through and leaves other messages to protobuf.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal hands the frame's reference to gRPC, which frees it after the write.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		b := f.b
		f.b = nil
		return b, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal takes a reference: gRPC frees its own when this returns.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		data.Ref()
		f.b = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
