package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/logical/connector"
)

func newRun() *cobra.Command {
	var trigger, checkpoint, progress, metricsAddr string
	var set []string
	c := &cobra.Command{
		Use:   "run [flags] FILE.sql",
		Short: "run every INSERT INTO of a file as a streaming query",
		Long: `Runs every INSERT INTO of the file as a streaming query, until stopped or, with
--trigger available-now or once, until drained. SIGINT or SIGTERM lets the running batch
finish and commit; a second one stops at once, which the next run recovers from.`,
		Example: `  tidemill run --trigger available-now orders.sql
  tidemill run --progress jsonl orders.sql 2>progress.jsonl`,
		Args: takes(1, 1, "one FILE.sql"),
		RunE: func(c *cobra.Command, args []string) error {
			o := tidemill.RunOptions{Checkpoint: checkpoint}
			var err error
			if o.Settings, err = parseSettings(set); err != nil {
				return err
			}
			if c.Flags().Changed("trigger") {
				t, err := incremental.ParseTrigger(trigger, connector.ParseDuration)
				if err != nil {
					return &usageError{err}
				}
				o.Trigger = &t
			}
			show, err := newReporter(progress, os.Stderr)
			if err != nil {
				return err
			}
			o.Listener = show.listener
			served, err := serveMetrics(metricsAddr, &o, show.note)
			if err != nil {
				return err
			}
			return errors.Join(runFile(c.Context(), args[0], o, show), served.close())
		},
	}
	c.Flags().StringVar(&trigger, "trigger", "", "available-now, once, or an interval such as '10 seconds'")
	c.Flags().StringVar(&checkpoint, "checkpoint", "", "the checkpoint directory, for a file with one INSERT")
	c.Flags().StringVar(&progress, "progress", "auto", "auto, plain, jsonl or none; on stderr")
	c.Flags().StringArrayVar(&set, "set", nil, "name=value, as SET; may be repeated")
	c.Flags().StringVar(&metricsAddr, "metrics", "", "serve metrics, a page and a health check over HTTP at HOST:PORT; :0 takes a free port")
	return c
}

func runFile(ctx context.Context, file string, o tidemill.RunOptions, show *reporter) error {
	// From here on a signal means to end well.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	text, err := os.ReadFile(file)
	if err != nil {
		return &usageError{err}
	}
	s, err := tidemill.NewSession(tidemill.Options{Warn: show.warn})
	if err != nil {
		return err
	}
	script, err := s.OpenScript(ctx, file, string(text), o)
	if err != nil {
		return err
	}
	running := script.Start(ctx)
	killed := stopOnSignals(signals, running)
	err = running.Wait()
	show.finish()
	if killed.Load() && errors.Is(err, context.Canceled) {
		return &exitError{1, "stopped at once by a second signal; the batch under way is not committed, the next run takes it up again"}
	}
	return err
}

// killAfter is how long a second signal waits for what cannot be interrupted.
const killAfter = 2 * time.Second

// stopOnSignals lets the first signal finish the running batch, the second end at once.
// It returns whether there was a second one.
func stopOnSignals(signals <-chan os.Signal, r *tidemill.Running) *atomic.Bool {
	killed := new(atomic.Bool)
	go func() {
		<-signals
		r.RequestStop()
		<-signals
		killed.Store(true)
		time.AfterFunc(killAfter, func() { os.Exit(1) })
		r.Kill()
	}()
	return killed
}
