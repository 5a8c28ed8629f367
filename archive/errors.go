package archive

import "errors"

// Sentinel errors of the port. Implementations wrap them; compare with
// errors.Is.
var (
	// ErrNotFound: nothing is stored under the asked key.
	ErrNotFound = errors.New("not found")
	// ErrOffsetTaken: a batch is already at the offset of an append.
	ErrOffsetTaken = errors.New("journal offset is taken")
	// ErrTooLarge: a value is beyond a limit of the store and would be refused for
	// ever.
	ErrTooLarge = errors.New("too large for the store")
	// ErrSealed: the generation is sealed or replaced; open the store again.
	ErrSealed = errors.New("store generation is sealed")
	// ErrCursorMoved: a cursor is not where its owner believes it to be.
	ErrCursorMoved = errors.New("cursor was moved by another")
	// ErrNoStore: no store was created for the network.
	ErrNoStore = errors.New("no store for this network")
	// ErrNewerSchema: the store was made by a newer version of the program.
	ErrNewerSchema = errors.New("store has a newer schema")
	// ErrInvalidRange: a range or lookup cannot be answered as asked.
	ErrInvalidRange = errors.New("invalid range")
)
