package admin

import (
	"context"
	"fmt"
	"sync"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// operationsKept bounds the finished operations that can still be asked for.
const operationsKept = 1000

// Operations serves google.longrunning.Operations. Every operation is finished
// when it is answered with; the last ones can be asked for again. Its methods may
// be called concurrently.
type Operations struct {
	longrunningpb.UnimplementedOperationsServer

	mu    sync.Mutex // guards all below
	n     int
	names []string // oldest first
	all   map[string]*longrunningpb.Operation
}

// NewOperations returns the service.
func NewOperations() *Operations {
	return &Operations{all: map[string]*longrunningpb.Operation{}}
}

// done returns a finished operation on a resource.
func (o *Operations) done(resource string, response, metadata proto.Message) (*longrunningpb.Operation, error) {
	result, err := anypb.New(response)
	if err != nil {
		return nil, status.Errorf(codes.DataLoss, "encode the operation: %v", err)
	}
	op := &longrunningpb.Operation{Done: true, Result: &longrunningpb.Operation_Response{Response: result}}
	if metadata != nil {
		if op.Metadata, err = anypb.New(metadata); err != nil {
			return nil, status.Errorf(codes.DataLoss, "encode the operation: %v", err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	op.Name = fmt.Sprintf("operations/%s/operations/%d", resource, o.n)
	o.all[op.Name] = op
	o.names = append(o.names, op.Name)
	if len(o.names) > operationsKept {
		delete(o.all, o.names[0])
		o.names = o.names[1:]
	}
	return op, nil
}

func (o *Operations) get(name string) (*longrunningpb.Operation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	op := o.all[name]
	if op == nil {
		return nil, status.Errorf(codes.NotFound, "Operation not found: %s", name)
	}
	return op, nil
}

// GetOperation returns a finished operation.
func (o *Operations) GetOperation(_ context.Context, req *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	return o.get(req.GetName())
}

// WaitOperation returns at once: operations are finished.
func (o *Operations) WaitOperation(_ context.Context, req *longrunningpb.WaitOperationRequest) (*longrunningpb.Operation, error) {
	return o.get(req.GetName())
}

// CancelOperation does nothing to a finished operation.
func (o *Operations) CancelOperation(_ context.Context, req *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	_, err := o.get(req.GetName())
	return &emptypb.Empty{}, err
}

// DeleteOperation forgets a finished operation.
func (o *Operations) DeleteOperation(_ context.Context, req *longrunningpb.DeleteOperationRequest) (*emptypb.Empty, error) {
	if _, err := o.get(req.GetName()); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, req.GetName())
	return &emptypb.Empty{}, nil
}
