#include "engine/runtime/reference/audio/mel_bands.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

double Mel(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

}  // namespace

absl::StatusOr<MfccAttrs> ReadMfccAttrs(const tensorflow::NodeDef& node) {
  MfccAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.upper, graph::GetFloatOr(node, "upper_frequency_limit", 4000.0f));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.lower, graph::GetFloatOr(node, "lower_frequency_limit", 20.0f));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.bands, graph::GetIntOr(node, "filterbank_channel_count", 40));
  OPTFARM_ASSIGN_OR_RETURN(attrs.coefficients,
                           graph::GetIntOr(node, "dct_coefficient_count", 13));
  if (attrs.bands < 1 || attrs.bands > 8192 || attrs.coefficients < 1 ||
      attrs.coefficients > attrs.bands) {
    return absl::InvalidArgumentError(
        absl::StrCat("dct_coefficient_count ", attrs.coefficients,
                     " must be within [1, filterbank_channel_count], which is ",
                     attrs.bands, " and must be within [1, 8192]"));
  }
  if (!(attrs.lower >= 0) || !(attrs.upper > attrs.lower) ||
      !std::isfinite(attrs.upper)) {
    return absl::InvalidArgumentError(
        absl::StrCat("frequency limits ", attrs.lower, " and ", attrs.upper,
                     " must be ascending and not negative"));
  }
  return attrs;
}

std::vector<double> MfccCosines(const MfccAttrs& attrs) {
  std::vector<double> cosines(attrs.coefficients * attrs.bands);
  const double norm = std::sqrt(2.0 / static_cast<double>(attrs.bands));
  const double step = std::numbers::pi / static_cast<double>(attrs.bands);
  for (int64_t i = 0; i < attrs.coefficients; ++i) {
    for (int64_t j = 0; j < attrs.bands; ++j) {
      cosines[i * attrs.bands + j] =
          norm * std::cos(static_cast<double>(i) * step *
                          (static_cast<double>(j) + 0.5));
    }
  }
  return cosines;
}

absl::StatusOr<MelBands> MelBands::Create(const MfccAttrs& attrs, int64_t bins,
                                          double sample_rate) {
  if (bins < 2 || !(sample_rate > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("a spectrogram of ", bins,
                                                   " bins at ", sample_rate,
                                                   " Hz has no frequencies"));
  }
  MelBands mel;
  const double hertz_per_bin =
      0.5 * sample_rate / static_cast<double>(bins - 1);
  const double begin = 1.5 + attrs.lower / hertz_per_bin;
  const double end = attrs.upper / hertz_per_bin;
  if (end >= static_cast<double>(bins)) {
    return absl::InvalidArgumentError(
        absl::StrCat("upper_frequency_limit ", attrs.upper, " lies above the ",
                     bins, " bins of ", sample_rate, " Hz audio"));
  }
  mel.begin_ = static_cast<int64_t>(begin);
  mel.end_ = static_cast<int64_t>(end);
  mel.PlaceBins(attrs, bins, hertz_per_bin);
  return mel;
}

void MelBands::Sum(const float* spectrum, std::vector<double>* bands) const {
  std::fill(bands->begin(), bands->end(), 0.0);
  const int64_t count = static_cast<int64_t>(bands->size());
  for (int64_t i = begin_; i <= end_; ++i) {
    const double magnitude = std::sqrt(static_cast<double>(spectrum[i]));
    const double weighted = magnitude * weights_[i];
    const int64_t band = owners_[i];
    if (band >= 0) (*bands)[band] += weighted;
    if (band + 1 < count) (*bands)[band + 1] += magnitude - weighted;
  }
}

void MelBands::PlaceBins(const MfccAttrs& attrs, int64_t bins,
                         double hertz_per_bin) {
  const double low = Mel(attrs.lower);
  const double spacing =
      (Mel(attrs.upper) - low) / static_cast<double>(attrs.bands + 1);
  std::vector<double> centers(attrs.bands + 1);
  for (int64_t i = 0; i <= attrs.bands; ++i) {
    centers[i] = low + spacing * static_cast<double>(i + 1);
  }
  owners_.assign(bins, -1);
  weights_.assign(bins, 0.0);
  int64_t next = 0;
  for (int64_t i = begin_; i <= end_; ++i) {
    const double mel = Mel(static_cast<double>(i) * hertz_per_bin);
    while (next < attrs.bands && centers[next] < mel) ++next;
    const int64_t band = next - 1;
    owners_[i] = band;
    weights_[i] = band >= 0 ? (centers[band + 1] - mel) /
                                  (centers[band + 1] - centers[band])
                            : (centers[0] - mel) / (centers[0] - low);
  }
}

}  // namespace optfarm::runtime
