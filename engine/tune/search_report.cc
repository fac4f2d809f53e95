#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/human_units.h"
#include "engine/tune/search.h"

namespace optfarm::tune {
namespace {

double BestKnown(const v1::TunedVariant& variant) {
  return variant.has_held_out_quality() ? variant.held_out_quality()
                                        : variant.quality();
}

// Files that differ by less are as large.
constexpr double kSameSize = 0.01;

bool IsSmaller(const v1::TunedVariant& a, const v1::TunedVariant& b) {
  return static_cast<double>(a.file_bytes()) <
         (1 - kSameSize) * static_cast<double>(b.file_bytes());
}

// At least as good in everything, and clearly better in something.
bool Beats(const v1::TunedVariant& a, const v1::TunedVariant& b) {
  if (a.latency_us() > b.latency_us() || IsSmaller(b, a) ||
      a.quality() < b.quality()) {
    return false;
  }
  return a.latency_high_us() < b.latency_low_us() || IsSmaller(a, b) ||
         a.quality() > b.quality();
}

// What would be better than the recommended one, and may keep the bound for all
// that the held-out samples tell.
void WarnOfDoubt(const v1::TunedDevice& device,
                 v1::TuneReport::Objective objective, v1::TuneReport* report) {
  const v1::TunedVariant* chosen = nullptr;
  for (const v1::TunedVariant& variant : device.variants()) {
    if (variant.name() == device.recommended() &&
        variant.threads() == device.recommended_threads()) {
      chosen = &variant;
    }
  }
  const v1::TunedVariant* doubtful = nullptr;
  for (const v1::TunedVariant& variant : device.variants()) {
    if (variant.meets_bound() || !variant.has_held_out_high() ||
        variant.held_out_high() < report->bound()) {
      continue;
    }
    const bool is_better =
        chosen == nullptr ||
        (objective == v1::TuneReport::SIZE
             ? IsSmaller(variant, *chosen)
             : variant.latency_high_us() < chosen->latency_low_us());
    if (is_better &&
        (doubtful == nullptr ||
         variant.held_out_quality() > doubtful->held_out_quality())) {
      doubtful = &variant;
    }
  }
  if (doubtful == nullptr) return;
  report->add_warnings(absl::StrFormat(
      "On %s, %s would be better (%s), and %d held-out samples do not tell "
      "whether it keeps the bound of %s: it has %s, in truth %s to %s. More "
      "samples, or a looser bound, would decide it.",
      device.device(), doubtful->name(),
      HumanMicroseconds(doubtful->latency_us()), doubtful->held_out_samples(),
      QualityText(report->bound(), report->measure()),
      QualityText(doubtful->held_out_quality(), report->measure()),
      QualityText(doubtful->held_out_low(), report->measure()),
      QualityText(doubtful->held_out_high(), report->measure())));
}

void MarkDominated(v1::TunedDevice* device) {
  for (v1::TunedVariant& variant : *device->mutable_variants()) {
    for (const v1::TunedVariant& other : device->variants()) {
      if (Beats(other, variant)) variant.set_dominated(true);
    }
  }
}

double ObjectiveOf(const v1::TunedVariant& variant,
                   v1::TuneReport::Objective objective) {
  return objective == v1::TuneReport::SIZE
             ? static_cast<double>(variant.file_bytes())
             : variant.latency_us();
}

// The best by the objective of those that keep the bound; among those that are
// not clearly slower, the one that answers best, then the smallest, then the
// one on fewer threads. Null: there is none.
const v1::TunedVariant* Recommend(const v1::TunedDevice& device,
                                  v1::TuneReport::Objective objective,
                                  bool held_out) {
  const v1::TunedVariant* best = nullptr;
  const auto may_ship = [&](const v1::TunedVariant& variant) {
    return variant.meets_bound() && variant.has_held_out_quality() == held_out;
  };
  for (const v1::TunedVariant& variant : device.variants()) {
    if (!may_ship(variant)) continue;
    if (best == nullptr ||
        ObjectiveOf(variant, objective) < ObjectiveOf(*best, objective)) {
      best = &variant;
    }
  }
  if (best == nullptr) return nullptr;
  const v1::TunedVariant* chosen = best;
  for (const v1::TunedVariant& variant : device.variants()) {
    if (!may_ship(variant)) continue;
    const bool is_as_good =
        objective == v1::TuneReport::SIZE
            ? variant.file_bytes() == best->file_bytes()
            : variant.latency_low_us() <= best->latency_high_us();
    const double gain = BestKnown(variant) - BestKnown(*chosen);
    if (is_as_good && (gain > 0 || (gain == 0 && IsSmaller(variant, *chosen)) ||
                       (gain == 0 && !IsSmaller(*chosen, variant) &&
                        variant.threads() < chosen->threads()))) {
      chosen = &variant;
    }
  }
  return chosen;
}

// Layers that the second leaves in float besides those of the first; empty
// where they differ in more than that.
std::vector<std::string> MoreInFloat(const Candidate& first,
                                     const Candidate& second) {
  if (!first.is_mixed || !second.is_mixed ||
      first.recipe.calibration().range_method() !=
          second.recipe.calibration().range_method()) {
    return {};
  }
  const auto& had = first.recipe.keep_float().nodes();
  const auto& has = second.recipe.keep_float().nodes();
  const std::set<std::string> before(had.begin(), had.end());
  std::set<std::string> more(has.begin(), has.end());
  for (const std::string& layer : before) {
    if (more.erase(layer) == 0) return {};
  }
  return {more.begin(), more.end()};
}

void SetHeldOut(const Quality& judged, v1::TunedVariant* variant) {
  variant->set_held_out_quality(judged.value);
  variant->set_held_out_samples(judged.samples);
  if (judged.low) variant->set_held_out_low(*judged.low);
  if (judged.high) variant->set_held_out_high(*judged.high);
}

}  // namespace

void Search::AddVariants(const Place& place, v1::TunedDevice* report) const {
  const double float_us = FloatMicroseconds(place);
  // Recipes that make the same graph are one variant.
  std::set<std::string> graphs;
  for (const Trial& trial : trials_) {
    const auto speed = trial.speeds.find(place);
    if (speed == trial.speeds.end() || !trial.quality) continue;
    const v1::Report& made = trial.job.report();
    if (!graphs.insert(made.optimized_model().sha256()).second) continue;
    v1::TunedVariant& variant = *report->add_variants();
    variant.set_threads(place.threads);
    variant.set_name(trial.candidate.name);
    variant.set_description(trial.candidate.description);
    variant.set_job_id(trial.job.job_id());
    variant.set_speedup(speed->second.speedup);
    variant.set_speedup_low(speed->second.low);
    variant.set_speedup_high(speed->second.high);
    variant.set_latency_us(float_us / speed->second.speedup);
    variant.set_latency_low_us(float_us / speed->second.high);
    variant.set_latency_high_us(float_us / speed->second.low);
    variant.set_file_bytes(made.size_after().file_bytes());
    variant.set_size_ratio(static_cast<double>(made.size_after().file_bytes()) /
                           static_cast<double>(std::max<int64_t>(
                               made.size_before().file_bytes(), 1)));
    variant.set_quality(trial.quality->value);
    if (trial.held_out) SetHeldOut(*trial.held_out, &variant);
    variant.set_meets_bound(MeetsBound(trial));
    const auto predicted = trial.predicted_us.find(place);
    if (predicted != trial.predicted_us.end()) {
      variant.set_predicted_us(predicted->second);
    }
    const auto others = trial.predicted_from_others_us.find(place);
    if (others != trial.predicted_from_others_us.end()) {
      variant.set_predicted_from_others_us(others->second);
    }
    if (trial.predicted_snr_db) {
      variant.set_predicted_snr_db(*trial.predicted_snr_db);
    }
  }
}

v1::TunedDevice Search::ReportOn(const std::string& device) const {
  v1::TunedDevice report;
  report.set_device(device);
  report.set_float_us(FloatMicroseconds({device, options_.threads.front()}));
  for (const Place& place : places_) {
    if (place.device != device) continue;
    AddVariants(place, &report);
    if (const auto counted = counted_.find(place); counted != counted_.end()) {
      report.set_known_steps(report.known_steps() + counted->second.known);
      report.set_estimated_steps(report.estimated_steps() +
                                 counted->second.estimated);
    }
  }
  std::stable_sort(report.mutable_variants()->begin(),
                   report.mutable_variants()->end(),
                   [](const auto& a, const auto& b) {
                     return a.latency_us() < b.latency_us();
                   });
  MarkDominated(&report);
  return report;
}

void Search::AddFrontSteps(v1::TunedDevice* report) const {
  const v1::TunedVariant* last = nullptr;
  for (const v1::TunedVariant& variant : report->variants()) {
    if (variant.dominated()) continue;
    if (last != nullptr) {
      v1::FrontStep& step = *report->add_front_steps();
      step.set_from(last->name());
      step.set_to(variant.name());
      step.set_from_threads(last->threads());
      step.set_to_threads(variant.threads());
      step.set_latency_us(variant.latency_us() - last->latency_us());
      step.set_quality(BestKnown(variant) - BestKnown(*last));
      step.set_file_bytes(variant.file_bytes() - last->file_bytes());
      for (const std::string& layer :
           MoreInFloat(Find(last->name())->candidate,
                       Find(variant.name())->candidate)) {
        step.add_layers(layer);
      }
    }
    last = &variant;
  }
}

void Search::ReportPredictions(v1::TuneReport* report) const {
  std::vector<std::pair<double, double>> all;
  double correlations = 0;
  int devices = 0;
  for (v1::TunedDevice& device : *report->mutable_devices()) {
    std::vector<std::pair<double, double>> pairs;
    for (const v1::TunedVariant& variant : device.variants()) {
      if (!variant.has_predicted_us()) continue;
      pairs.emplace_back(variant.predicted_us(), variant.latency_us());
    }
    all.insert(all.end(), pairs.begin(), pairs.end());
    if (const auto error = MedianError(pairs)) device.set_latency_error(*error);
    if (const auto correlation = RankCorrelation(pairs)) {
      device.set_latency_rank_correlation(*correlation);
      correlations += *correlation;
      ++devices;
    }
  }
  if (const auto error = MedianError(all)) report->set_latency_error(*error);
  if (devices > 0) {
    report->set_latency_rank_correlation(correlations / devices);
  }
}

void Search::ReportOneForAll(v1::TuneReport* report) const {
  if (!options_.one_for_all) return;
  // As for the devices: what was judged at the end, where anything was.
  const bool is_judged = std::any_of(
      trials_.begin(), trials_.end(),
      [](const Trial& trial) { return trial.held_out.has_value(); });
  double least = std::numeric_limits<double>::infinity();
  for (const Trial& trial : trials_) {
    double worst = 1;
    size_t devices = 0;
    for (const v1::TunedDevice& device : report->devices()) {
      double best = std::numeric_limits<double>::infinity();
      double own = 0;
      for (const v1::TunedVariant& variant : device.variants()) {
        if (!variant.meets_bound()) continue;
        if (is_judged && !variant.has_held_out_quality()) continue;
        const double value = ObjectiveOf(variant, options_.objective);
        best = std::min(best, value);
        // On as many threads as is best there.
        if (variant.name() == trial.candidate.name) {
          own = own > 0 ? std::min(own, value) : value;
        }
      }
      if (own <= 0) continue;
      ++devices;
      worst = std::max(worst, own / best);
    }
    if (devices != options_.devices.size() || worst >= least) continue;
    least = worst;
    report->set_one_for_all(trial.candidate.name);
    report->set_worst_regret(worst);
  }
}

v1::TuneReport Search::Report() const {
  v1::TuneReport report;
  report.set_measure(options_.measure);
  report.set_objective(options_.objective);
  report.set_bound(options_.bound.value_or(DefaultBound(options_.measure)));
  double optimism = 0;
  int judged_twice = 0;
  for (const std::string& device : options_.devices) {
    v1::TunedDevice& tuned = *report.add_devices();
    tuned = ReportOn(device);
    AddFrontSteps(&tuned);
    const v1::TunedVariant* chosen = Recommend(tuned, options_.objective, true);
    if (chosen == nullptr) {
      const bool none_judged = std::none_of(
          trials_.begin(), trials_.end(),
          [](const Trial& trial) { return trial.held_out.has_value(); });
      if (none_judged) chosen = Recommend(tuned, options_.objective, false);
    }
    if (chosen != nullptr) {
      tuned.set_recommended(chosen->name());
      tuned.set_recommended_threads(chosen->threads());
      if (chosen->has_held_out_quality()) {
        optimism += chosen->quality() - chosen->held_out_quality();
        ++judged_twice;
      }
    }
    WarnOfDoubt(tuned, options_.objective, &report);
  }
  if (judged_twice > 0) report.set_optimism(optimism / judged_twice);
  int measured = 0;
  for (const Trial& trial : trials_) measured += trial.candidate.on_devices;
  report.set_measured(measured);
  report.set_judged(judged_);
  const auto ranges =
      static_cast<int>(OtherRanges(options_.samples).size()) + 1;
  const auto recipes =
      static_cast<int>(WholeRecipes(options_.samples).size()) - 1;
  report.set_considered(
      recipes + ranges * std::max(static_cast<int>(choices_.size()), 1));
  report.set_device_seconds(device_seconds_);
  ReportPredictions(&report);
  ReportOneForAll(&report);
  for (const std::string& step : steps_) report.add_steps(step);
  for (const std::string& warning : warnings_) report.add_warnings(warning);
  return report;
}

}  // namespace optfarm::tune
