package derive

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attestry/attestry/archive"
)

// Period is the length of the buckets of an answer: a stored one, or one that is
// merged of those of a stored one.
type Period struct {
	text   string
	stored archive.Period
	step   time.Duration // 0 for months
	origin time.Time     // where buckets begin, on either side
}

// possible is what ParsePeriod accepts, for errors.
const possible = "use minutes that divide a day (1min, 5min, 10min, 15min, 30min, 60min, …), hours that divide it (1h, 6h, 12h, …), 1day, 1week or 1month"

// ParsePeriod reads a period. Buckets begin at midnight UTC or whole steps from it,
// those of weeks on Mondays. Errors: ErrInvalid for one that is not made of stored
// buckets so, with what is possible.
func ParsePeriod(text string) (Period, error) {
	p := Period{text: text, stored: archive.Period1Day, origin: time.Unix(0, 0).UTC()}
	const day = 24 * time.Hour
	switch text {
	case "1day":
		p.step = day
		return p, nil
	case "1week":
		p.step, p.origin = 7*day, time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC)
		return p, nil
	case "1month":
		return p, nil
	}
	number, unit := text, time.Duration(0)
	if n, ok := strings.CutSuffix(text, "min"); ok {
		number, unit = n, time.Minute
	} else if n, ok := strings.CutSuffix(text, "h"); ok {
		number, unit = n, time.Hour
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || unit == 0 || day%(time.Duration(n)*unit) != 0 || number != strconv.FormatUint(n, 10) {
		return p, fmt.Errorf("%w: period %.20q cannot be merged of stored ones: %s", ErrInvalid, text, possible)
	}
	p.step = time.Duration(n) * unit
	for _, stored := range archive.Periods() {
		if s := time.Duration(stored.Seconds()) * time.Second; s > 0 && p.step%s == 0 {
			p.stored = stored // the longest that divides it
		}
	}
	return p, nil
}

// String returns the text that the period was read from.
func (p Period) String() string { return p.text }

// Stored returns the stored period of which buckets are made.
func (p Period) Stored() archive.Period { return p.stored }

// Start returns when the bucket that holds t begins.
func (p Period) Start(t time.Time) time.Time {
	t = t.UTC()
	if p.step == 0 {
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	since := t.Sub(p.origin)
	return t.Add(-((since%p.step + p.step) % p.step))
}

// Next returns when the bucket after the one that begins at start begins.
func (p Period) Next(start time.Time) time.Time {
	if p.step == 0 {
		return start.AddDate(0, 1, 0)
	}
	return start.Add(p.step)
}
