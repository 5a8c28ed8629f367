// Package sim is a deterministic simulation of the archive, in tests only. It
// runs the production code of classify, append and apply (ingest.Writer) and of
// publish (feed.Publisher) under random schedules, in which every durable call
// is a step that may crash, fail, lose its reply or land much later, and holds
// what is left against the journal.
//
// Each rule of docs/protocol.md that can be switched off in the model has a
// switch, and a test that it then turns the simulation red.
package sim
