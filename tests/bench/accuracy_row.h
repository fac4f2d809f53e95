// What was measured of one model with one recipe: a line of the results file
// and a line of the page.

#ifndef OPTFARM_TESTS_BENCH_ACCURACY_ROW_H_
#define OPTFARM_TESTS_BENCH_ACCURACY_ROW_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/bench/accuracy_cases.h"

namespace optfarm::bench {

struct AccuracyRow {
  std::string model;
  std::string recipe;
  // Why there are no numbers; else empty.
  std::string error;
  int64_t calibration_samples = 0;
  int64_t measured_samples = 0;
  // UNITS: percent; -1 without labels.
  double float_top1 = -1;
  double top1 = -1;
  // UNITS: percentage points, the 95 % interval of the difference.
  double loss_low = 0;
  double loss_high = 0;
  // UNITS: fraction; -1 for outputs without classes.
  double agreement = -1;
  // UNITS: decibel, of the worst output.
  double snr_db = 0;
  // UNITS: bytes.
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
  int64_t gzip_before = 0;
  int64_t gzip_after = 0;
  int64_t zstd_after = 0;
  // Convolutions and matrix products: 8-bit ones of all.
  int convolutions = 0;
  int integer_convolutions = 0;
  int products = 0;
  int integer_products = 0;
  // Why some stay in float: reasons with their number, one line.
  std::string float_layers;
  // Which attempt was taken, as the report says it.
  std::string attempt;
  // The bounds that the recipe itself has were met.
  bool passed = false;
  // UNITS: seconds for the whole job.
  double seconds = 0;
  // Of a detector: what was found, in words. Agreement is then the share of
  // the float model's detections that were found, SNR that of what goes into
  // the selection of boxes.
  std::string detections;
};

// Rows by model and recipe, kept in a file so that a page can be made of
// several runs.
using AccuracyRows = std::map<std::pair<std::string, std::string>, AccuracyRow>;

std::string PrintRows(const AccuracyRows& rows);
// ERRORS: InvalidArgument naming the line for a file that PrintRows did not
// write.
absl::StatusOr<AccuracyRows> ParseRows(absl::string_view text);

// docs/accuracy.md, with the recipes in that order.
std::string PrintAccuracyPage(const AccuracyRows& rows,
                              absl::Span<const AccuracyCase> cases,
                              absl::Span<const std::string> recipes);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_ACCURACY_ROW_H_
