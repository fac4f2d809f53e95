// How numbers went over time, drawn: a line of block characters for a terminal,
// an SVG picture for a page. Pure functions.

#ifndef OPTFARM_CLIENT_CLI_TABLES_TREND_CHART_H_
#define OPTFARM_CLIENT_CLI_TABLES_TREND_CHART_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace optfarm::client_cli {

// One character a value from the lowest block (the least) to the full one (the
// most); values that are all alike stand in the middle. At most `width`
// characters: of more values, the last ones.
std::string Sparkline(absl::Span<const double> values, size_t width);

struct TrendPoint {
  absl::Time time;
  double value = 0;
  // Drawn hollow.
  bool doubtful = false;
};

struct TrendLine {
  std::string label;
  // In order of time.
  std::vector<TrendPoint> points;
};

// A complete SVG document: lines over time from 0 up, both axes labelled, a
// legend below, each point with its value as a tooltip. `unit` names what the
// values are ("median, ms"); they are shown divided by `scale`.
std::string TrendSvg(absl::Span<const TrendLine> lines, const std::string& unit,
                     double scale);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_TREND_CHART_H_
