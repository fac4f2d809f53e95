#include "engine/tune/quality.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "engine/optimize/judging/confidence.h"

namespace optfarm::tune {
namespace {

// UNITS: decibel. Stands for no difference.
constexpr double kClean = 200;

double Finite(double snr) {
  if (std::isnan(snr)) return 0;
  return std::clamp(snr, -kClean, kClean);
}

// The least agreement of the outputs that have classes; negative: none has.
const v1::TensorComparison* WorstAgreement(const v1::Report& report) {
  const v1::TensorComparison* worst = nullptr;
  for (const v1::TensorComparison& output : report.outputs_compared()) {
    if (output.top1_agreement() < 0) continue;
    if (worst == nullptr || output.top1_agreement() < worst->top1_agreement()) {
      worst = &output;
    }
  }
  return worst;
}

// A share with its interval, in percent.
Quality ShareOf(double share, int64_t samples) {
  const optimize::Interval interval = optimize::WilsonInterval(
      std::llround(share * static_cast<double>(samples)), samples);
  return {100 * share, 100 * interval.low, 100 * interval.high, samples};
}

}  // namespace

v1::TuneReport::Measure MeasureOf(const v1::Report& report) {
  if (report.has_paired_accuracy()) return v1::TuneReport::TOP1_CHANGE;
  if (WorstAgreement(report) != nullptr) return v1::TuneReport::AGREEMENT;
  return v1::TuneReport::SNR;
}

std::optional<Quality> QualityOf(const v1::Report& report,
                                 v1::TuneReport::Measure measure) {
  if (report.outputs_compared().empty()) return std::nullopt;
  if (measure == v1::TuneReport::TOP1_CHANGE) {
    if (!report.has_paired_accuracy()) return std::nullopt;
    const v1::PairedAccuracy& paired = report.paired_accuracy();
    return Quality{paired.change(), paired.change_low(), paired.change_high(),
                   paired.samples()};
  }
  if (measure == v1::TuneReport::AGREEMENT) {
    const v1::TensorComparison* worst = WorstAgreement(report);
    if (worst == nullptr) return std::nullopt;
    return ShareOf(worst->top1_agreement(), worst->samples());
  }
  Quality quality;
  quality.value = WorstSnr(report);
  quality.samples = report.outputs_compared(0).samples();
  return quality;
}

double WorstSnr(const v1::Report& report) {
  double worst = std::numeric_limits<double>::infinity();
  for (const v1::TensorComparison& output : report.outputs_compared()) {
    worst = std::min(worst, Finite(output.snr_db()));
  }
  return std::isinf(worst) ? 0 : worst;
}

double DefaultBound(v1::TuneReport::Measure measure) {
  switch (measure) {
    case v1::TuneReport::TOP1_CHANGE:
      return -0.5;
    case v1::TuneReport::AGREEMENT:
      return 98;
    default:
      return 20;
  }
}

std::string QualityText(double value, v1::TuneReport::Measure measure) {
  switch (measure) {
    case v1::TuneReport::TOP1_CHANGE:
      return absl::StrFormat("%+.1f points", value == 0 ? 0 : value);
    case v1::TuneReport::AGREEMENT:
      return absl::StrFormat("%.1f %%", value);
    default:
      return value >= kClean ? "exact" : absl::StrFormat("%.1f dB", value);
  }
}

absl::string_view MeasureTitle(v1::TuneReport::Measure measure) {
  switch (measure) {
    case v1::TuneReport::TOP1_CHANGE:
      return "top-1";
    case v1::TuneReport::AGREEMENT:
      return "agreement";
    default:
      return "SNR";
  }
}

}  // namespace optfarm::tune
