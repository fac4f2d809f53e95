// The search behind `optctl tune`: which variants to try next, and what to make
// of those that were tried. It talks to nobody: its caller runs the candidates
// as jobs and hands their outcomes back. The same outcomes lead to the same
// steps.

#ifndef OPTFARM_ENGINE_TUNE_SEARCH_H_
#define OPTFARM_ENGINE_TUNE_SEARCH_H_

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/tune/candidates.h"
#include "engine/tune/device_speed.h"
#include "engine/tune/latency_table.h"
#include "engine/tune/layer_costs.h"
#include "engine/tune/layer_space.h"
#include "engine/tune/quality.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/tune.pb.h"

namespace optfarm::tune {

struct SearchOptions {
  // At least one.
  std::vector<std::string> devices;
  // UNITS: threads; at least one. Devices measure with each.
  std::vector<int> threads = {1};
  v1::TuneReport::Objective objective = v1::TuneReport::LATENCY;
  // The least quality, in the unit of `measure`; absent: DefaultBound.
  std::optional<double> bound;
  // Unspecified: the strictest that the data allow.
  v1::TuneReport::Measure measure = v1::TuneReport::MEASURE_UNSPECIFIED;
  SampleUse samples;
  // UNITS: candidates that devices measure, the whole recipes among them.
  int most_measured = 16;
  // Find one variant for all devices too.
  bool one_for_all = false;
};

// A candidate that has been tried.
struct Trial {
  Candidate candidate;
  // Ended, with its report, measurements and verdicts.
  v1::Job job;
  // Absent: it failed, or has no such quality.
  std::optional<Quality> quality;
  double snr_db = 0;
  std::map<Place, MeasuredSpeed> speeds;
  // UNITS: microseconds; before it was measured. The second from other models
  // alone.
  std::map<Place, double> predicted_us;
  std::map<Place, double> predicted_from_others_us;
  std::optional<double> predicted_snr_db;
  // What it answers on samples that the search does not see.
  std::optional<Quality> held_out;
};

// THREADS: one at a time.
class Search {
 public:
  explicit Search(SearchOptions options);

  // What to try next, all at once; empty when the search has ended. Each comes
  // back by Add before the next call, also when its job failed.
  std::vector<Candidate> Next();

  // ERRORS: InvalidArgument when the data have no such measure as was asked
  // for; FailedPrecondition when the base of the search failed: with the job's
  // own message.
  absl::Status Add(const Candidate& candidate, v1::Job job);

  // What other models' steps took on the machine at a place, measured before
  // this search. REQUIRES: nothing was added yet.
  void Know(const Place& place, absl::Span<const v1::StepTime> steps);

  // No more candidates: Next goes straight to the last judgement.
  void Finish() { finish_ = true; }

  // REQUIRES: the search has ended.
  v1::TuneReport Report() const;
  // What was tried under this name; null: nothing was.
  // OWNERSHIP: the search's.
  const Trial* Find(const std::string& name) const;

 private:
  enum class Stage {
    kWholeRecipes,
    kRanges,
    kJudgeMixed,
    kMeasureMixed,
    kRefine,
    kHeldOut,
    kEnd
  };

  std::vector<Candidate> Take(Stage stage);
  std::vector<Candidate> TakeRanges();
  std::vector<Candidate> TakeMixed();
  std::vector<Candidate> TakeSurvivors();
  // Weights of 4 bits, where they are smaller than all that was measured.
  std::optional<Candidate> TakeFourBits();
  // What made the graph smaller and still keeps the bound, with the recipe that
  // does nothing else; of the same transform the last.
  std::vector<SizeReduction> UsefulReductions() const;
  bool IsSmaller(const std::string& reduced, const std::string& built_in) const;
  std::vector<Candidate> TakeReduced();
  std::vector<Candidate> TakeRefined();
  std::vector<Candidate> TakeFinalists();

  // What is known once the whole recipes are measured.
  void Prepare();
  void ChooseRanges();
  Candidate OnDevices(const Candidate& candidate);
  // Predicted latency over that of everything quantized, averaged over places.
  double Slowness(const Subset& in_float) const;
  // The same of what devices measured, or of what the steps that the worker
  // made of it tell.
  double Slowness(const Trial& trial) const;
  double FloatMicroseconds(const Place& place) const;
  // nullopt: not measured there.
  std::optional<double> Microseconds(const Trial& trial,
                                     const Place& place) const;
  // From the steps of its report by the table, else from the costs of its
  // layers; nullopt: nothing is known yet. UNITS: microseconds.
  std::optional<double> Predict(const Trial& trial, const Place& place) const;
  // Devices' clocks differ from job to job; this is how much the device was
  // slower in the usual job than in the first. UNITS: ratio.
  double DriftOf(const Place& place) const;
  void NotePredictions(Trial* trial);
  void FillTable(const v1::Job& job, const Place& place);
  void MakeCosts(const Place& place, const Trial& base);
  double CostOf(const Place& place, const Subset& in_float) const;
  // Whether one of the last round's is on the front somewhere.
  bool FrontMoved() const;
  // How many more devices may measure.
  int Left() const;
  Trial& TrialOf(const Candidate& candidate);
  absl::Status Learn(Trial* trial);
  void AddHeldOut(const Candidate& candidate, const v1::Job& job);
  bool IsWorse(const Trial& judged) const;
  const Trial* Base() const { return Find(kBaseName); }
  bool MeetsBound(const Trial& trial) const;
  v1::TunedDevice ReportOn(const std::string& device) const;
  void AddVariants(const Place& place, v1::TunedDevice* report) const;
  void AddFrontSteps(v1::TunedDevice* report) const;
  void ReportPredictions(v1::TuneReport* report) const;
  void ReportOneForAll(v1::TuneReport* report) const;

  SearchOptions options_;
  Stage stage_ = Stage::kWholeRecipes;
  bool finish_ = false;
  // In the order they were tried; a candidate that was judged quickly is here
  // once, with its best judgement. Pointers to them stay.
  std::deque<Trial> trials_;
  std::vector<Place> places_;
  // The original's latency in each job, UNITS: microseconds.
  std::map<Place, std::vector<double>> float_us_;
  // What steps took: as other models knew them, and with this one's too.
  std::map<Place, LatencyTable> known_, tables_;
  std::map<Place, LayerCosts> layer_costs_;
  std::map<Place, FloatCostModel> costs_;
  // Of the plans that were predicted. UNITS: steps.
  std::map<Place, LatencyTable::Prediction> counted_;
  // Names of those that the last refinement measured.
  std::set<std::string> refined_last_;
  LayerSpace space_;
  std::vector<Subset> choices_;
  Candidate ranges_;
  int judged_ = 0;
  double device_seconds_ = 0;
  std::vector<std::string> steps_, warnings_;
};

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_SEARCH_H_
