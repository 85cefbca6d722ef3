// Package tidemill is a single-node, columnar micro-batch engine. Directories of files
// go in; exact, incremental, exactly-once results come out.
//
// A Session holds what queries share. Its SQL and Read methods, and the verbs of
// logical.DataFrame, describe a result; Collect runs a description over what is there
// now, and WriteStream keeps it fresh for ever:
//
//	s, err := tidemill.NewSession(tidemill.Options{})
//	orders := s.ReadStream("landing/orders", csv.Options{Header: csv.HeaderYes}, schema)
//	byCity := orders.
//		Where(tidemill.Col("quantity").Gt(tidemill.Lit(0))).
//		GroupBy(tidemill.Col("city")).
//		Agg(tidemill.Count().As("orders"), tidemill.Sum(tidemill.Col("price")).As("revenue"))
//	q, err := s.WriteStream(byCity).To("out/by_city", parquet.Options{}).
//		Mode(tidemill.Complete).Trigger(tidemill.AvailableNow()).Start(ctx)
//	err = q.Wait(ctx)
//	rows, err := s.Collect(ctx, s.Read("out/by_city"))
//
// Every method that acts takes a context and returns errors; builders are immutable
// and report the first mistake where they are used. See package incremental for what a
// restart does, checkpoint/FORMAT.md for every file on disk, docs/go-api.md for a guide
// and examples/embed for a program.
package tidemill

//go:generate go test . -run TestFunctionReference|TestAPI -rewrite
