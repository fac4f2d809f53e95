#include "engine/tune/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optfarm::tune {
namespace {

// UNITS: candidates.
constexpr size_t kMostJudged = 8;
constexpr int kMostSurvivors = 4;
constexpr int kMostFinalists = 8;
constexpr size_t kFinalistsOfDevice = 3;
// Candidates of a refinement. There are more of them as long as the front
// moves.
constexpr int kRefined = 2;
constexpr char kOriginal[] = "float";
// UNITS: decibel. Ranges or layers that gain less are not worth another try.
constexpr double kLeastGain = 0.5;
// UNITS: ratio of sizes. What is larger is not worth measuring for its size.
constexpr double kSmaller = 0.98;
constexpr double kRounding = 1e-9;
// Size reductions are tried with the first, and those that are useful with the
// second.
constexpr char kReducedFloat[] = "fp32";
constexpr char kReducedInt8[] = "int8";

struct Predicted {
  const Subset* subset = nullptr;
  double slowness = 0;
  double snr_db = 0;
};

// Those that no other is at least as fast and as clean as; fastest first.
std::vector<Predicted> FrontOf(std::vector<Predicted> all) {
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.slowness != b.slowness) return a.slowness < b.slowness;
    return a.snr_db > b.snr_db;
  });
  std::vector<Predicted> front;
  for (const Predicted& one : all) {
    if (front.empty() || one.snr_db > front.back().snr_db + kRounding) {
      front.push_back(one);
    }
  }
  return front;
}

// At most `most` of a front, spread evenly over its decibels.
std::vector<Predicted> Spread(const std::vector<Predicted>& front,
                              size_t most) {
  if (front.size() <= most) return front;
  std::vector<Predicted> chosen;
  const double low = front.front().snr_db;
  const double step = (front.back().snr_db - low) / static_cast<double>(most);
  for (size_t i = 1; i <= most; ++i) {
    const double wanted = low + static_cast<double>(i) * step - kRounding;
    const auto found =
        std::find_if(front.begin(), front.end(),
                     [&](const auto& one) { return one.snr_db >= wanted; });
    const bool is_new =
        found != front.end() &&
        (chosen.empty() || chosen.back().subset != found->subset);
    if (is_new) chosen.push_back(*found);
  }
  return chosen;
}

Subset AllOf(const LayerSpace& space) {
  Subset all;
  for (size_t i = 0; i < space.units().size(); ++i) {
    all.push_back(static_cast<int>(i));
  }
  return all;
}

}  // namespace

Search::Search(SearchOptions options) : options_(std::move(options)) {
  for (const std::string& device : options_.devices) {
    for (const int threads : options_.threads) {
      places_.push_back({device, threads});
    }
  }
}

void Search::Know(const Place& place, absl::Span<const v1::StepTime> steps) {
  for (const v1::StepTime& step : steps) {
    known_[place].Add(step);
    tables_[place].Add(step);
  }
}

std::vector<Candidate> Search::Next() {
  while (stage_ != Stage::kEnd) {
    if (finish_ && stage_ < Stage::kHeldOut) stage_ = Stage::kHeldOut;
    const Stage stage = stage_;
    std::vector<Candidate> candidates = Take(stage);
    const bool stays = stage == Stage::kRefine && !candidates.empty();
    if (!stays) stage_ = static_cast<Stage>(static_cast<int>(stage) + 1);
    if (!candidates.empty()) return candidates;
  }
  return {};
}

std::vector<Candidate> Search::Take(Stage stage) {
  switch (stage) {
    case Stage::kWholeRecipes:
      return WholeRecipes(options_.samples);
    case Stage::kRanges:
      return TakeRanges();
    case Stage::kJudgeMixed:
      return TakeMixed();
    case Stage::kMeasureMixed:
      return TakeSurvivors();
    case Stage::kRefine:
      return TakeRefined();
    case Stage::kHeldOut:
      return TakeFinalists();
    case Stage::kEnd:
      break;
  }
  return {};
}

Trial& Search::TrialOf(const Candidate& candidate) {
  for (Trial& trial : trials_) {
    if (trial.candidate.name == candidate.name) return trial;
  }
  Trial& trial = trials_.emplace_back();
  trial.candidate = candidate;
  return trial;
}

const Trial* Search::Find(const std::string& name) const {
  for (const Trial& trial : trials_) {
    if (trial.candidate.name == name) return &trial;
  }
  return nullptr;
}

absl::Status Search::Add(const Candidate& candidate, v1::Job job) {
  for (const Place& place : places_) {
    if (const auto speed = SpeedOn(job, place)) {
      device_seconds_ += speed->device_seconds;
      float_us_[place].push_back(speed->float_us);
    }
  }
  if (candidate.judge == Judge::kHeldOut) {
    AddHeldOut(candidate, job);
    return absl::OkStatus();
  }
  if (candidate.judge == Judge::kQuick) ++judged_;
  Trial& trial = TrialOf(candidate);
  trial.candidate = candidate;
  trial.job = std::move(job);
  if (candidate.on_devices) NotePredictions(&trial);
  for (const Place& place : places_) FillTable(trial.job, place);
  return Learn(&trial);
}

// By what was known before it was measured.
void Search::NotePredictions(Trial* trial) {
  const auto& steps = trial->job.report().steps();
  if (steps.empty()) return;
  for (const Place& place : places_) {
    const LatencyTable& known = known_[place];
    if (!known.empty()) {
      trial->predicted_from_others_us[place] = known.Predict(steps).us;
    }
    // The whole recipes are what the table of this model begins with.
    const auto prediction = Predict(*trial, place);
    if (stage_ <= Stage::kRanges || !prediction) continue;
    trial->predicted_us[place] = *prediction;
    const LatencyTable::Prediction counted = tables_[place].Predict(steps);
    counted_[place].known += counted.known;
    counted_[place].estimated += counted.estimated;
  }
}

void Search::FillTable(const v1::Job& job, const Place& place) {
  const v1::Measurement* original = MeasurementOn(job, place, kOriginal);
  const auto floats = float_us_.find(place);
  if (original == nullptr || floats == float_us_.end()) return;
  const double drift = floats->second.front() / original->median_us();
  for (const v1::Measurement& measurement : job.measurements()) {
    if (measurement.device() != place.device || measurement.steps().empty() ||
        measurement.threads() != place.threads) {
      continue;
    }
    double sum = 0;
    for (v1::StepTime step : measurement.steps()) {
      sum += step.median_us();
      step.set_median_us(step.median_us() * drift);
      tables_[place].Add(step);
    }
    tables_[place].Correct(sum, measurement.median_us());
  }
}

double Search::DriftOf(const Place& place) const {
  const auto floats = float_us_.find(place);
  return floats == float_us_.end()
             ? 1
             : FloatMicroseconds(place) / floats->second.front();
}

double Search::CostOf(const Place& place, const Subset& in_float) const {
  const auto own = layer_costs_.find(place);
  return own == layer_costs_.end() ? space_.FloatCost(in_float)
                                   : own->second.Sum(in_float);
}

std::optional<double> Search::Predict(const Trial& trial,
                                      const Place& place) const {
  const auto table = tables_.find(place);
  const auto& steps = trial.job.report().steps();
  if (!steps.empty() && table != tables_.end() && !table->second.empty()) {
    return table->second.Predict(steps).us * DriftOf(place);
  }
  const auto costs = costs_.find(place);
  if (costs == costs_.end() || !trial.candidate.is_mixed) return std::nullopt;
  return costs->second.Predict(CostOf(place, trial.candidate.in_float));
}

absl::Status Search::Learn(Trial* trial) {
  const v1::Job& job = trial->job;
  const std::string& name = trial->candidate.name;
  if (job.state() != v1::SUCCEEDED || !job.has_report()) {
    const std::string why = absl::StrCat(
        name, " (job ", job.job_id(), ") ended as ",
        v1::JobState_Name(job.state()), ": ", job.failure().message());
    if (name == kBaseName) {
      return absl::FailedPreconditionError(
          absl::StrCat("the search begins with int8, and ", why));
    }
    warnings_.push_back(absl::StrCat(why, "; it was left out."));
    trial->quality.reset();
    return absl::OkStatus();
  }
  if (options_.measure == v1::TuneReport::MEASURE_UNSPECIFIED) {
    options_.measure = MeasureOf(job.report());
  }
  trial->quality = QualityOf(job.report(), options_.measure);
  trial->snr_db = WorstSnr(job.report());
  if (!trial->quality && name == kBaseName) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bound is on ", MeasureTitle(options_.measure),
                     ", and the samples do not tell it: ",
                     options_.measure == v1::TuneReport::TOP1_CHANGE
                         ? "there are no labels"
                         : "no output of the model is a row of class scores"));
  }
  for (const Place& place : places_) {
    const auto speed = SpeedOn(job, place);
    if (!speed) continue;
    trial->speeds[place] = *speed;
    const auto cost = costs_.find(place);
    if (trial->candidate.is_mixed && cost != costs_.end()) {
      cost->second.Learn(CostOf(place, trial->candidate.in_float),
                         *Microseconds(*trial, place));
    }
  }
  if (trial->candidate.is_mixed && !trial->candidate.in_float.empty()) {
    space_.Learn(trial->candidate.in_float, trial->snr_db);
  }
  return absl::OkStatus();
}

void Search::AddHeldOut(const Candidate& candidate, const v1::Job& job) {
  Trial& trial = TrialOf(candidate);
  if (job.state() != v1::SUCCEEDED || !job.has_report()) {
    warnings_.push_back(absl::StrCat(candidate.name,
                                     " could not be judged on held-out "
                                     "samples: ",
                                     job.failure().message()));
    return;
  }
  if (job.report().optimized_model().sha256() !=
      trial.job.report().optimized_model().sha256()) {
    warnings_.push_back(absl::StrCat(
        candidate.name,
        " was made twice with different bytes; its held-out judgement is left "
        "out."));
    return;
  }
  trial.held_out = QualityOf(job.report(), options_.measure);
}

int Search::Left() const {
  int measured = 0;
  for (const Trial& trial : trials_) measured += trial.candidate.on_devices;
  return std::max(options_.most_measured - measured, 0);
}

double Search::FloatMicroseconds(const Place& place) const {
  const auto found = float_us_.find(place);
  if (found == float_us_.end()) return 0;
  std::vector<double> values = found->second;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::optional<double> Search::Microseconds(const Trial& trial,
                                           const Place& place) const {
  const auto speed = trial.speeds.find(place);
  if (speed == trial.speeds.end()) return std::nullopt;
  return FloatMicroseconds(place) / speed->second.speedup;
}

bool Search::MeetsBound(const Trial& trial) const {
  const std::optional<Quality>& judged =
      trial.held_out ? trial.held_out : trial.quality;
  return judged && judged->value >=
                       options_.bound.value_or(DefaultBound(options_.measure)) -
                           kRounding;
}

void Search::Prepare() {
  const Trial* base = Base();
  if (base == nullptr || !base->quality) return;
  space_ = LayerSpace(base->job.report());
  ranges_ = base->candidate;
  if (space_.units().empty()) {
    steps_.push_back("No layer was quantized: there is nothing to mix.");
    return;
  }
  choices_ = space_.Choices();
  for (const Place& place : places_) MakeCosts(place, *base);
}

void Search::MakeCosts(const Place& place, const Trial& base) {
  const auto base_us = Microseconds(base, place);
  if (!base_us) return;
  const Trial* fp32 = Find("fp32");
  const auto float_us =
      fp32 == nullptr ? std::nullopt : Microseconds(*fp32, place);
  double trust = 0;
  if (float_us) {
    const v1::Measurement* in_float =
        MeasurementOn(fp32->job, place, fp32->candidate.recipe.name());
    const v1::Measurement* in_8_bits =
        MeasurementOn(base.job, place, base.candidate.recipe.name());
    if (in_float != nullptr && in_8_bits != nullptr) {
      LayerCosts costs(space_, *in_float, *in_8_bits, tables_[place]);
      trust = costs.Magnitude() / 2;
      if (!costs.empty()) layer_costs_[place] = std::move(costs);
    }
  }
  costs_.emplace(place,
                 FloatCostModel(*base_us, float_us ? *float_us - *base_us : 0,
                                CostOf(place, AllOf(space_)), trust));
}

std::vector<Candidate> Search::TakeRanges() {
  Prepare();
  std::vector<Candidate> candidates;
  if (!choices_.empty()) candidates = OtherRanges(options_.samples);
  candidates.push_back(FourBitWeights(options_.samples));
  for (const SizeReduction& reduction : kSizeReductions) {
    candidates.push_back(
        ReducedRecipe(kReducedFloat, reduction, options_.samples));
  }
  return candidates;
}

void Search::ChooseRanges() {
  const Trial* best = Base();
  std::string log;
  for (const Candidate& candidate : OtherRanges(options_.samples)) {
    const Trial* trial = Find(candidate.name);
    if (trial == nullptr || !trial->quality) continue;
    absl::StrAppend(&log, ", ", candidate.name,
                    absl::StrFormat(" %.1f dB", trial->snr_db));
    const double gain = best == Base() ? kLeastGain : 0;
    if (trial->snr_db > best->snr_db + gain) best = trial;
  }
  steps_.push_back(absl::StrFormat(
      "Judged other ways to take ranges: %s %.1f dB%s; went on with %s.",
      kBaseName, Base()->snr_db, log, best->candidate.name));
  if (best == Base()) return;
  ranges_ = best->candidate;
  space_.Rebase(best->snr_db);
}

double Search::Slowness(const Subset& in_float) const {
  double sum = 0;
  for (const auto& [place, model] : costs_) {
    sum += model.Predict(CostOf(place, in_float)) / model.Predict(0);
  }
  return costs_.empty() ? 1 : sum / static_cast<double>(costs_.size());
}

double Search::Slowness(const Trial& trial) const {
  double sum = 0;
  int places = 0;
  for (const auto& [place, model] : costs_) {
    const auto measured = Microseconds(trial, place);
    const auto us = measured ? measured : Predict(trial, place);
    if (!us) continue;
    sum += *us / model.Predict(0);
    ++places;
  }
  return places == 0 ? 1 : sum / places;
}

std::vector<Candidate> Search::TakeMixed() {
  std::vector<Candidate> candidates;
  for (const SizeReduction& reduction : UsefulReductions()) {
    candidates.push_back(
        ReducedRecipe(kReducedInt8, reduction, options_.samples));
  }
  if (choices_.empty()) return candidates;
  ChooseRanges();
  std::vector<Predicted> all;
  for (const Subset& subset : choices_) {
    if (subset.empty()) continue;
    all.push_back({&subset, Slowness(subset), space_.PredictSnr(subset)});
  }
  const std::vector<Predicted> front =
      Spread(FrontOf(std::move(all)), kMostJudged);
  for (const Predicted& one : front) {
    candidates.push_back(
        MixedCandidate(ranges_, space_, *one.subset, Judge::kQuick));
    TrialOf(candidates.back()).predicted_snr_db = one.snr_db;
  }
  steps_.push_back(absl::StrCat(
      "Predicted ", choices_.size(),
      " ways to leave layers in float, and judged ", front.size(),
      " of the promising ones on a few samples, without a device."));
  return candidates;
}

// Whether something that was measured is faster, smaller and better than what
// this one is predicted to be.
bool Search::IsWorse(const Trial& judged) const {
  const double slowness = Slowness(judged);
  const auto bytes = judged.job.report().size_after().file_bytes();
  return std::any_of(trials_.begin(), trials_.end(), [&](const Trial& other) {
    return !other.speeds.empty() && other.quality &&
           Slowness(other) <= slowness && other.snr_db >= judged.snr_db &&
           other.job.report().size_after().file_bytes() <= bytes;
  });
}

Candidate Search::OnDevices(const Candidate& candidate) {
  Candidate measured = Rejudged(candidate, Judge::kWhole, true);
  Trial& trial = TrialOf(measured);
  for (const Place& place : places_) {
    if (const auto us = Predict(trial, place)) trial.predicted_us[place] = *us;
  }
  return measured;
}

std::optional<Candidate> Search::TakeFourBits() {
  const Trial* trial = Find(kFourBitName);
  if (trial == nullptr || !trial->quality) return std::nullopt;
  const auto bytes_of = [](const Trial& one) {
    return static_cast<double>(one.job.report().size_after().file_bytes());
  };
  double smallest = INFINITY;
  for (const Trial& other : trials_) {
    if (!other.speeds.empty()) smallest = std::min(smallest, bytes_of(other));
  }
  const bool is_smaller = bytes_of(*trial) <= kSmaller * smallest;
  steps_.push_back(absl::StrFormat(
      "Judged %s on a few samples: %.1f dB, %.2f of the smallest that was "
      "measured%s.",
      kFourBitName, trial->snr_db, bytes_of(*trial) / smallest,
      is_smaller ? "" : "; not worth measuring"));
  if (!is_smaller || Left() == 0) return std::nullopt;
  return OnDevices(trial->candidate);
}

bool Search::IsSmaller(const std::string& reduced,
                       const std::string& built_in) const {
  const Trial* trial = Find(reduced);
  const Trial* whole = Find(built_in);
  return trial != nullptr && trial->quality && whole != nullptr &&
         whole->quality &&
         trial->job.report().size_after().file_bytes() <
             whole->job.report().size_after().file_bytes();
}

std::vector<SizeReduction> Search::UsefulReductions() const {
  std::vector<SizeReduction> useful;
  for (const SizeReduction& reduction : kSizeReductions) {
    const std::string name =
        ReducedRecipe(kReducedFloat, reduction, options_.samples).name;
    if (!IsSmaller(name, kReducedFloat) || !MeetsBound(*Find(name))) continue;
    const bool is_same =
        !useful.empty() &&
        useful.back().transform == absl::string_view(reduction.transform);
    if (is_same) useful.pop_back();
    useful.push_back(reduction);
  }
  return useful;
}

std::vector<Candidate> Search::TakeReduced() {
  std::vector<Candidate> candidates;
  std::string log;
  for (const SizeReduction& reduction : UsefulReductions()) {
    for (const char* built_in : {kReducedFloat, kReducedInt8}) {
      const std::string name =
          ReducedRecipe(built_in, reduction, options_.samples).name;
      if (!IsSmaller(name, built_in)) continue;
      const Trial& trial = *Find(name);
      absl::StrAppend(&log, log.empty() ? "" : ", ", name,
                      absl::StrFormat(" %.1f dB", trial.snr_db));
      candidates.push_back(OnDevices(trial.candidate));
    }
  }
  if (Find(ReducedRecipe(kReducedFloat, kSizeReductions[0], options_.samples)
               .name)) {
    steps_.push_back(absl::StrCat(
        "Judged fewer channels and products of low rank: ",
        log.empty() ? "no graph gets smaller and keeps the bound" : log, "."));
  }
  return candidates;
}

std::vector<Candidate> Search::TakeSurvivors() {
  std::vector<const Trial*> alive;
  size_t judged = 0;
  for (const Trial& trial : trials_) {
    const bool is_judged = trial.candidate.judge == Judge::kQuick &&
                           trial.candidate.is_mixed && trial.quality;
    // Of the other ranges only those that everything goes on with.
    const bool is_choice = !trial.candidate.in_float.empty() ||
                           trial.candidate.name == ranges_.name;
    if (!is_judged || !is_choice) continue;
    ++judged;
    if (!IsWorse(trial)) alive.push_back(&trial);
  }
  std::stable_sort(alive.begin(), alive.end(),
                   [&](const Trial* a, const Trial* b) {
                     return Slowness(*a) < Slowness(*b);
                   });
  // Whoever is slower has to be cleaner.
  std::vector<const Trial*> front;
  for (const Trial* trial : alive) {
    if (front.empty() || trial->snr_db > front.back()->snr_db) {
      front.push_back(trial);
    }
  }
  std::vector<Candidate> candidates;
  if (auto four_bits = TakeFourBits()) {
    candidates.push_back(*std::move(four_bits));
  }
  const auto left = static_cast<size_t>(Left());
  for (Candidate& reduced : TakeReduced()) {
    if (candidates.size() == left) break;
    candidates.push_back(std::move(reduced));
  }
  const size_t most = std::min<size_t>(
      {front.size(), kMostSurvivors, left - candidates.size()});
  for (size_t i = 0; i < most; ++i) {
    candidates.push_back(OnDevices(front[i * front.size() / most]->candidate));
  }
  if (judged > 0) {
    steps_.push_back(absl::StrCat("Of ", judged, " judged, ", front.size(),
                                  " might be better than what was measured; "
                                  "devices measured ",
                                  most, "."));
  }
  return candidates;
}

bool Search::FrontMoved() const {
  for (const std::string& device : options_.devices) {
    const v1::TunedDevice report = ReportOn(device);
    for (const v1::TunedVariant& variant : report.variants()) {
      if (!variant.dominated() && refined_last_.contains(variant.name())) {
        return true;
      }
    }
  }
  return false;
}

std::vector<Candidate> Search::TakeRefined() {
  if (!refined_last_.empty() && !FrontMoved()) {
    steps_.push_back("None of these is on the front: the search ended.");
    return {};
  }
  // Faster than the fastest that keeps the bound, and cleaner than the cleanest
  // faster one that does not.
  const Trial* good = nullptr;
  for (const Trial& trial : trials_) {
    if (!trial.candidate.is_mixed || trial.speeds.empty()) continue;
    if (!MeetsBound(trial)) continue;
    if (good == nullptr || Slowness(trial) < Slowness(*good)) good = &trial;
  }
  const double most = good == nullptr ? INFINITY : 0.99 * Slowness(*good);
  double bad_snr = -INFINITY;
  for (const Trial& trial : trials_) {
    if (!trial.candidate.is_mixed || trial.speeds.empty()) continue;
    if (MeetsBound(trial) || Slowness(trial) >= most) continue;
    bad_snr = std::max(bad_snr, trial.snr_db);
  }
  std::vector<Predicted> between;
  for (const Subset& subset : choices_) {
    const double snr = space_.PredictSnr(subset);
    const double slowness = Slowness(subset);
    const bool is_tried =
        std::any_of(trials_.begin(), trials_.end(), [&](const Trial& trial) {
          return trial.candidate.is_mixed && trial.candidate.in_float == subset;
        });
    if (is_tried || subset.empty() || !(snr > bad_snr)) continue;
    if (slowness < most) between.push_back({&subset, slowness, snr});
  }
  refined_last_.clear();
  std::vector<Candidate> candidates;
  const auto room = static_cast<size_t>(std::min(kRefined, Left()));
  for (const Predicted& one : Spread(FrontOf(std::move(between)), room)) {
    if (candidates.size() == room) break;
    const Candidate candidate =
        MixedCandidate(ranges_, space_, *one.subset, Judge::kWhole);
    TrialOf(candidate).predicted_snr_db = one.snr_db;
    candidates.push_back(OnDevices(candidate));
    refined_last_.insert(candidate.name);
  }
  if (!candidates.empty()) {
    steps_.push_back(absl::StrCat(
        good == nullptr ? "Nothing keeps the bound yet"
                        : absl::StrCat(good->candidate.name,
                                       " is the fastest that keeps the bound"),
        "; devices measured ", candidates.size(),
        " more that were predicted to be better."));
  }
  return candidates;
}

std::vector<Candidate> Search::TakeFinalists() {
  std::vector<Candidate> finalists;
  std::set<std::string> names;
  const auto take = [&](const Trial& trial) {
    if (finalists.size() == kMostFinalists) return;
    if (!names.insert(trial.candidate.name).second) return;
    finalists.push_back(Rejudged(trial.candidate, Judge::kHeldOut, false));
  };
  for (const std::string& device : options_.devices) {
    const v1::TunedDevice report = ReportOn(device);
    std::vector<v1::TunedVariant> chosen;
    for (const v1::TunedVariant& variant : report.variants()) {
      if (!variant.dominated()) chosen.push_back(variant);
    }
    // Those that keep the bound, best first; then those that come nearest.
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](const auto& a, const auto& b) {
                       if (a.meets_bound() != b.meets_bound()) {
                         return a.meets_bound();
                       }
                       if (!a.meets_bound()) return a.quality() > b.quality();
                       if (options_.objective == v1::TuneReport::SIZE) {
                         return a.file_bytes() < b.file_bytes();
                       }
                       return a.latency_us() < b.latency_us();
                     });
    for (size_t i = 0; i < chosen.size() && i < kFinalistsOfDevice; ++i) {
      take(*Find(chosen[i].name()));
    }
  }
  // What one would have taken without a search.
  if (const Trial* usual = Find("int8");
      usual != nullptr && usual->quality && !usual->speeds.empty()) {
    take(*usual);
  }
  if (!finalists.empty()) {
    steps_.push_back(
        absl::StrCat("Judged ", finalists.size(),
                     " of the measured variants on samples that the search "
                     "has not seen."));
  }
  return finalists;
}

}  // namespace optfarm::tune
