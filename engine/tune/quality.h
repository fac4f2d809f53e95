// How good a variant's answers are, as one number of which more is better.

#ifndef OPTFARM_ENGINE_TUNE_QUALITY_H_
#define OPTFARM_ENGINE_TUNE_QUALITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "optfarm/v1/report.pb.h"
#include "optfarm/v1/tune.pb.h"

namespace optfarm::tune {

// UNITS: those of v1::TuneReport::Measure.
struct Quality {
  double value = 0;
  // Ends of the 95 % interval; absent where the measure has none.
  std::optional<double> low;
  std::optional<double> high;
  int64_t samples = 0;
};

// The strictest measure that the report allows: accuracy where there are
// labels, else agreement where an output has classes, else signal to noise.
v1::TuneReport::Measure MeasureOf(const v1::Report& report);

// nullopt: the report does not have it. Infinite decibels are 200.
std::optional<Quality> QualityOf(const v1::Report& report,
                                 v1::TuneReport::Measure measure);

// UNITS: decibel of the worst output, at most 200; 0 without outputs.
double WorstSnr(const v1::Report& report);

// The bound where the user gives none: half a point of accuracy, 98 % of
// agreement, 20 dB.
double DefaultBound(v1::TuneReport::Measure measure);

// "-0.3 points", "98.5 %", "31.2 dB".
std::string QualityText(double value, v1::TuneReport::Measure measure);

// "top-1", "agreement", "SNR".
absl::string_view MeasureTitle(v1::TuneReport::Measure measure);

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_QUALITY_H_
