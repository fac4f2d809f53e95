// The search against a farm that is a formula: what it asks for, what it
// learns, and what it recommends.

#include "engine/tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/tune/pareto_chart.h"
#include "tests/support/status_matchers.h"

namespace optfarm::tune {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct FakeLayer {
  std::string name;
  double noise;
  // UNITS: microseconds.
  double int8_us, float_us;
};

// A net of six layers on two devices; the second takes three times as long and
// gains less by 8 bits.
class FakeFarm {
 public:
  std::vector<FakeLayer> layers = {
      {"first", 0.004, 20, 60},   {"second", 0.0002, 30, 90},
      {"third", 0.0004, 30, 110}, {"fourth", 0.0001, 20, 80},
      {"fifth", 0.008, 10, 25},   {"last", 0.0001, 10, 40}};
  bool has_labels = true;
  // What this recipe's jobs end with.
  std::string broken;
  // Of the whole with weights of 4 bits. UNITS: bytes.
  int four_bit_bytes = 270;
  // Of the channels that no layer needs. UNITS: bytes.
  int needless_bytes = 0;
  // What a tenth less of rank saves, and the noise that it makes. UNITS: bytes.
  int bytes_of_rank = 0;
  double noise_of_rank = 0;
  // Points of accuracy that a thousandth of noise costs.
  double points_per_noise = 0.25;
  double held_out_points = -0.1;
  // What agents and workers tell of steps.
  bool tells_steps = false;
  std::vector<int> thread_counts = {1};
  int jobs = 0;

  v1::Job Run(const Candidate& candidate) {
    v1::Job job;
    job.set_job_id(absl::StrCat("job", ++jobs));
    if (candidate.name == broken) {
      job.set_state(v1::FAILED);
      job.mutable_failure()->set_message("it does not run");
      return job;
    }
    job.set_state(v1::SUCCEEDED);
    const bool is_int8 = absl::StartsWith(candidate.name, "int8");
    double noise = is_int8 ? 0.00001 : 1e-9;
    std::set<std::string> in_float(
        candidate.recipe.keep_float().nodes().begin(),
        candidate.recipe.keep_float().nodes().end());
    for (const FakeLayer& layer : layers) {
      const bool stays = !is_int8 || in_float.contains(layer.name);
      noise += stays ? 0 : layer.noise;
    }
    if (candidate.recipe.calibration().range_method() == v1::Calibration::MSE) {
      noise *= 1.01;
    }
    noise += noise_of_rank * RankTenths(candidate);
    Report(candidate, noise, is_int8, job.mutable_report());
    if (tells_steps) {
      for (const v1::StepTime& step : Steps(is_int8, in_float, 1)) {
        *job.mutable_report()->add_steps() = step.work();
      }
    }
    if (candidate.on_devices) {
      for (const int threads : thread_counts) {
        Measure(candidate, is_int8, in_float, threads, &job);
      }
    }
    return job;
  }

  // One for each layer, named after it; on a device that takes `factor` times
  // as long, and `int8_factor` times that for 8 bits.
  std::vector<v1::StepTime> Steps(bool is_int8,
                                  const std::set<std::string>& in_float,
                                  double factor, double int8_factor = 1) const {
    std::vector<v1::StepTime> steps;
    for (const FakeLayer& layer : layers) {
      const bool stays = !is_int8 || in_float.contains(layer.name);
      v1::StepTime& step = steps.emplace_back();
      v1::StepWork& work = *step.mutable_work();
      work.set_op(stays ? "Conv2D" : "QuantizedConv2D");
      work.set_key(absl::StrCat(work.op(), layer.name));
      work.add_nodes(stays ? layer.name
                           : absl::StrCat(layer.name, "/eightbit"));
      work.set_multiply_adds(1e6);
      work.set_output_bytes(1000);
      step.set_median_us(
          factor * (stays ? layer.float_us : int8_factor * layer.int8_us));
    }
    return steps;
  }

 private:
  static int RankTenths(const Candidate& candidate) {
    for (const int tenths : {2, 3, 4}) {
      if (absl::EndsWith(candidate.name, absl::StrCat("-rank", tenths, "0"))) {
        return tenths;
      }
    }
    return 0;
  }

  void Report(const Candidate& candidate, double noise, bool is_int8,
              v1::Report* report) {
    v1::TensorComparison& output = *report->add_outputs_compared();
    output.set_snr_db(-10 * std::log10(noise));
    output.set_samples(100);
    output.set_top1_agreement(has_labels ? 1 - noise * 10 : -1);
    if (has_labels) {
      v1::PairedAccuracy& paired = *report->mutable_paired_accuracy();
      paired.set_samples(100);
      paired.set_change(
          -1000 * noise * points_per_noise +
          (candidate.judge == Judge::kHeldOut ? held_out_points : 0));
      paired.set_change_low(paired.change() - 1);
      paired.set_change_high(paired.change() + 1);
    }
    report->mutable_size_before()->set_file_bytes(1000);
    int bytes = is_int8 ? 270 : 1000;
    if (candidate.name == kFourBitName) bytes = four_bit_bytes;
    if (absl::EndsWith(candidate.name, "-pruned")) bytes -= needless_bytes;
    bytes -= bytes_of_rank * RankTenths(candidate);
    report->mutable_size_after()->set_file_bytes(bytes);
    v1::Recipe graph = candidate.recipe;
    graph.clear_verification();
    report->mutable_optimized_model()->set_sha256(
        Sha256Hex(graph.SerializeAsString()));
    if (!candidate.recipe.verification().sensitivity()) return;
    for (const FakeLayer& layer : layers) {
      v1::LayerSensitivity& alone = *report->add_sensitivity();
      alone.set_name(layer.name);
      alone.set_output_snr_db(-10 * std::log10(layer.noise));
      alone.set_alone_snr_db(40);
      alone.set_float_milliseconds(layer.float_us / 500);
      alone.set_result_milliseconds(layer.int8_us / 500);
    }
  }

  void Measure(const Candidate& candidate, bool is_int8,
               const std::set<std::string>& in_float, int threads,
               v1::Job* job) {
    for (const auto& [device, factor] :
         {std::pair("fast", 1.0), std::pair("slow", 3.0)}) {
      const auto steps =
          Steps(is_int8, in_float, factor / threads, factor > 1 ? 1.3 : 1);
      double own = 0;
      for (const v1::StepTime& step : steps) own += step.median_us();
      v1::Measurement& original = *job->add_measurements();
      original.set_device(device);
      original.set_variant("float");
      original.set_threads(threads);
      original.set_median_us(factor * 405 / threads);
      original.set_mean_us(factor * 405 / threads);
      original.set_runs(50);
      v1::Measurement& measured = *job->add_measurements();
      measured = original;
      measured.set_variant(candidate.recipe.name());
      measured.set_median_us(own);
      if (tells_steps) {
        measured.mutable_steps()->Assign(steps.begin(), steps.end());
      }
      v1::ShippingVerdict& verdict = *job->add_verdicts();
      verdict.set_device(device);
      verdict.set_threads(threads);
      verdict.set_variant(candidate.recipe.name());
      verdict.set_speedup(factor * 405 / threads / own);
      verdict.set_speedup_low(verdict.speedup() * 0.98);
      verdict.set_speedup_high(verdict.speedup() * 1.02);
    }
  }
};

SearchOptions Options() {
  SearchOptions options;
  options.devices = {"fast", "slow"};
  options.one_for_all = true;
  return options;
}

// Runs it to its end; returns the names in the order they were asked for.
std::vector<std::string> RunAll(FakeFarm& farm, Search* search) {
  std::vector<std::string> names;
  while (true) {
    const std::vector<Candidate> candidates = search->Next();
    if (candidates.empty()) return names;
    for (const Candidate& candidate : candidates) {
      names.push_back(candidate.name);
      EXPECT_THAT(optimize::CheckRecipe(candidate.recipe), IsOk());
      EXPECT_THAT(search->Add(candidate, farm.Run(candidate)), IsOk());
    }
  }
}

// What comes back when the whole recipes do.
absl::Status FirstError(FakeFarm& farm, Search* search) {
  absl::Status status;
  for (const Candidate& candidate : search->Next()) {
    status.Update(search->Add(candidate, farm.Run(candidate)));
  }
  return status;
}

const v1::TunedVariant& Chosen(const v1::TunedDevice& device) {
  for (const v1::TunedVariant& variant : device.variants()) {
    if (variant.name() == device.recommended()) return variant;
  }
  ADD_FAILURE() << "nothing is recommended on " << device.device();
  return device.variants(0);
}

TEST(SearchTest, TheNoisyLayersGoBackToFloatAndNothingElse) {
  FakeFarm farm;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  EXPECT_EQ(report.measure(), v1::TuneReport::TOP1_CHANGE);
  EXPECT_EQ(report.bound(), -0.5);
  ASSERT_EQ(report.devices_size(), 2);
  const v1::TunedVariant& chosen = Chosen(report.devices(0));
  EXPECT_TRUE(chosen.meets_bound());
  EXPECT_TRUE(chosen.has_held_out_quality());
  EXPECT_NEAR(chosen.quality() - chosen.held_out_quality(), 0.1, 1e-9);
  // Everything in 8 bits loses 3.2 points; both noisy layers in float cost 55
  // microseconds.
  const Trial* trial = search.Find(chosen.name());
  ASSERT_NE(trial, nullptr);
  const auto& nodes = trial->candidate.recipe.keep_float().nodes();
  EXPECT_THAT(std::vector<std::string>(nodes.begin(), nodes.end()),
              ::testing::IsSupersetOf({"first", "fifth"}));
  EXPECT_LT(nodes.size(), 4);
  EXPECT_LT(chosen.latency_us(), 250);
  EXPECT_GT(report.considered(), 40);
  EXPECT_LT(report.measured(), 13);
  EXPECT_LT(report.latency_error(), 0.1);
  EXPECT_EQ(report.one_for_all(), chosen.name());
  EXPECT_TRUE(search.Find(report.one_for_all())->held_out.has_value());
  EXPECT_NEAR(report.worst_regret(), 1, 0.05);
}

TEST(SearchTest, PredictsFromTheStepsOfDevices) {
  FakeFarm farm;
  farm.tells_steps = true;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  EXPECT_LT(report.latency_error(), 0.02);
  for (const v1::TunedDevice& device : report.devices()) {
    EXPECT_GT(device.known_steps(), 0);
    EXPECT_EQ(device.estimated_steps(), 0);
    EXPECT_LT(device.latency_error(), 0.02);
    for (const v1::TunedVariant& variant : device.variants()) {
      EXPECT_FALSE(variant.has_predicted_from_others_us());
    }
  }
  // Without a table of other models nothing was known before.
  EXPECT_FALSE(Chosen(report.devices(0)).has_predicted_from_others_us());
}

TEST(SearchTest, KnowsFromOtherModelsBeforeItMeasures) {
  FakeFarm farm;
  farm.tells_steps = true;
  Search search(Options());
  std::vector<v1::StepTime> known;
  for (const bool is_int8 : {false, true}) {
    for (v1::StepTime& step : farm.Steps(is_int8, {}, 1)) {
      step.mutable_work()->clear_nodes();
      known.push_back(std::move(step));
    }
  }
  search.Know({"fast", 1}, known);
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  for (const v1::TunedVariant& variant : report.devices(0).variants()) {
    ASSERT_TRUE(variant.has_predicted_from_others_us()) << variant.name();
    EXPECT_NEAR(variant.predicted_from_others_us(), variant.latency_us(),
                0.02 * variant.latency_us());
  }
  EXPECT_FALSE(report.devices(1).variants(0).has_predicted_from_others_us());
}

TEST(SearchTest, ChoosesThreadsWithTheVariant) {
  FakeFarm farm;
  farm.tells_steps = true;
  farm.thread_counts = {1, 2};
  SearchOptions options = Options();
  options.threads = {1, 2};
  Search search(options);
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  for (const v1::TunedDevice& device : report.devices()) {
    EXPECT_EQ(device.recommended_threads(), 2);
    std::set<int> counts;
    for (const v1::TunedVariant& variant : device.variants()) {
      counts.insert(variant.threads());
      EXPECT_NEAR(variant.speedup() * variant.latency_us() * variant.threads(),
                  device.float_us(), 1e-6);
    }
    EXPECT_EQ(counts, (std::set<int>{1, 2}));
  }
  EXPECT_FALSE(report.one_for_all().empty());
}

TEST(SearchTest, SaysWhatEachStepOfTheFrontBought) {
  FakeFarm farm;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TunedDevice device = search.Report().devices(0);
  std::vector<const v1::TunedVariant*> front;
  for (const v1::TunedVariant& variant : device.variants()) {
    if (!variant.dominated()) front.push_back(&variant);
  }
  ASSERT_GT(front.size(), 1u);
  ASSERT_EQ(device.front_steps_size(), static_cast<int>(front.size()) - 1);
  bool names_layers = false;
  for (int i = 0; i < device.front_steps_size(); ++i) {
    const v1::FrontStep& step = device.front_steps(i);
    EXPECT_EQ(step.from(), front[i]->name());
    EXPECT_EQ(step.to(), front[i + 1]->name());
    EXPECT_NEAR(step.latency_us(),
                front[i + 1]->latency_us() - front[i]->latency_us(), 1e-9);
    names_layers |= !step.layers().empty();
  }
  EXPECT_TRUE(names_layers);
}

TEST(SearchTest, WeightsOfFourBitsAreMeasuredWhereTheyAreTheSmallest) {
  for (const int bytes : {140, 270}) {
    FakeFarm farm;
    farm.tells_steps = true;
    farm.four_bit_bytes = bytes;
    SearchOptions options = Options();
    options.objective = v1::TuneReport::SIZE;
    Search search(options);
    const std::vector<std::string> names = RunAll(farm, &search);
    EXPECT_THAT(names, ::testing::Contains(kFourBitName));
    const Trial* trial = search.Find(kFourBitName);
    ASSERT_NE(trial, nullptr);
    const v1::TunedDevice device = search.Report().devices(0);
    if (bytes < 270) {
      EXPECT_EQ(device.recommended(), kFourBitName);
      EXPECT_EQ(Chosen(device).file_bytes(), bytes);
    } else {
      EXPECT_TRUE(trial->speeds.empty());
      EXPECT_NE(device.recommended(), kFourBitName);
    }
  }
}

TEST(SearchTest, RecipesWithoutNeedlessChannelsAreMeasuredWhereThereAreAny) {
  for (const int bytes : {0, 20}) {
    FakeFarm farm;
    farm.needless_bytes = bytes;
    SearchOptions options = Options();
    options.objective = v1::TuneReport::SIZE;
    options.bound = -100;
    Search search(options);
    const std::vector<std::string> names = RunAll(farm, &search);
    EXPECT_THAT(names, ::testing::Contains("fp32-pruned"));
    const Trial* in_float = search.Find("fp32-pruned");
    const Trial* in_8_bits = search.Find("int8-pruned");
    ASSERT_NE(in_float, nullptr);
    EXPECT_EQ(in_float->speeds.empty(), bytes == 0);
    EXPECT_EQ(in_8_bits == nullptr, bytes == 0);
    if (bytes == 0) continue;
    EXPECT_FALSE(in_8_bits->speeds.empty());
    EXPECT_EQ(search.Report().devices(0).recommended(), "int8-pruned");
  }
}

TEST(SearchTest, TheLowestRankThatKeepsTheBoundIsMeasured) {
  FakeFarm farm;
  farm.bytes_of_rank = 10;
  // A quarter of a point for each thousandth: 0.3, 0.45 and 0.6 points.
  farm.noise_of_rank = 0.0006;
  Search search(Options());
  const std::vector<std::string> names = RunAll(farm, &search);
  EXPECT_FALSE(search.Find("fp32-rank30")->speeds.empty());
  EXPECT_TRUE(search.Find("fp32-rank20")->speeds.empty());
  EXPECT_TRUE(search.Find("fp32-rank40")->speeds.empty());
  EXPECT_NE(search.Find("int8-rank30"), nullptr);
  EXPECT_EQ(search.Find("int8-rank40"), nullptr);
}

TEST(CandidatesTest, GraphsGetSmallerBeforeAnythingIsQuantized) {
  for (const char* built_in : {"fp32", "int8"}) {
    for (const SizeReduction& reduction : kSizeReductions) {
      const Candidate candidate =
          ReducedRecipe(built_in, reduction, SampleUse());
      EXPECT_THAT(optimize::CheckRecipe(candidate.recipe), IsOk());
      std::vector<std::string> steps;
      for (const v1::TransformStep& step : candidate.recipe.transforms()) {
        steps.push_back(step.name());
      }
      const auto added =
          std::find(steps.begin(), steps.end(), reduction.transform);
      ASSERT_NE(added, steps.end());
      EXPECT_EQ(*std::prev(added), "fold_old_batch_norms");
      EXPECT_EQ(std::find(steps.begin(), added, "quantize_layers"), added);
    }
  }
}

TEST(SearchTest, EndsWhenTheFrontNoLongerMoves) {
  FakeFarm farm;
  SearchOptions options = Options();
  options.most_measured = 200;
  Search search(options);
  RunAll(farm, &search);
  EXPECT_LT(search.Report().measured(), 40);
}

TEST(SearchTest, TheSameOutcomesLeadToTheSameSteps) {
  FakeFarm farm, again;
  Search first(Options()), second(Options());
  EXPECT_EQ(RunAll(farm, &first), RunAll(again, &second));
  EXPECT_EQ(first.Report().SerializeAsString(),
            second.Report().SerializeAsString());
}

TEST(SearchTest, NothingIsMixedWhereEightBitsKeepTheBound) {
  FakeFarm farm;
  farm.points_per_noise = 0.01;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  const std::string& name = report.devices(0).recommended();
  EXPECT_THAT(name, HasSubstr("int8"));
  ASSERT_NE(search.Find(name), nullptr);
  EXPECT_TRUE(search.Find(name)->candidate.in_float.empty());
  EXPECT_GT(Chosen(report.devices(0)).speedup(), 3.2);
}

TEST(SearchTest, ABudgetThatHasEndedLeavesTheLastJudgement) {
  FakeFarm farm;
  Search search(Options());
  for (const Candidate& candidate : search.Next()) {
    OPTFARM_ASSERT_OK(search.Add(candidate, farm.Run(candidate)));
  }
  search.Finish();
  const std::vector<Candidate> last = search.Next();
  ASSERT_FALSE(last.empty());
  for (const Candidate& candidate : last) {
    EXPECT_EQ(candidate.judge, Judge::kHeldOut) << candidate.name;
    EXPECT_FALSE(candidate.on_devices);
    OPTFARM_ASSERT_OK(search.Add(candidate, farm.Run(candidate)));
  }
  EXPECT_TRUE(search.Next().empty());
  EXPECT_TRUE(Chosen(search.Report().devices(1)).meets_bound());
}

TEST(SearchTest, NoMoreIsMeasuredThanWasAllowed) {
  FakeFarm farm;
  SearchOptions options = Options();
  options.most_measured = 7;
  Search search(options);
  RunAll(farm, &search);
  EXPECT_EQ(search.Report().measured(), 7);
}

TEST(SearchTest, ACandidateThatFailsIsLeftOutAndNamed) {
  FakeFarm farm;
  farm.broken = "weights8";
  Search search(Options());
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  ASSERT_EQ(report.warnings_size(), 1);
  EXPECT_THAT(report.warnings(0),
              AllOf(HasSubstr("weights8"), HasSubstr("it does not run")));
  EXPECT_FALSE(report.devices(0).recommended().empty());
}

TEST(SearchTest, WithoutItsBaseItSaysWhy) {
  FakeFarm farm;
  farm.broken = kBaseName;
  Search search(Options());
  EXPECT_THAT(FirstError(farm, &search),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("it does not run")));
}

TEST(SearchTest, ABoundOnAccuracyNeedsLabels) {
  FakeFarm farm;
  farm.has_labels = false;
  SearchOptions options = Options();
  options.measure = v1::TuneReport::TOP1_CHANGE;
  Search search(options);
  EXPECT_THAT(FirstError(farm, &search),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there are no labels")));
}

TEST(SearchTest, WithoutClassesDecibelsDecide) {
  FakeFarm farm;
  farm.has_labels = false;
  SearchOptions options = Options();
  options.bound = 30;
  Search search(options);
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  EXPECT_EQ(report.measure(), v1::TuneReport::SNR);
  EXPECT_GE(Chosen(report.devices(0)).held_out_quality(), 30);
}

TEST(SearchTest, NothingIsRecommendedThatMissesTheBoundOnHeldOutSamples) {
  FakeFarm farm;
  farm.held_out_points = -50;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  for (const v1::TunedDevice& device : report.devices()) {
    EXPECT_EQ(device.recommended(), "");
  }
}

TEST(SearchTest, SaysWhatTooFewSamplesCannotDecide) {
  FakeFarm farm;
  // Everything in 8 bits misses the bound of half a point by less than the
  // interval is wide.
  farm.points_per_noise = 0.06;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TuneReport report = search.Report();
  EXPECT_FALSE(report.devices(0).recommended().empty());
  ASSERT_FALSE(report.warnings().empty());
  EXPECT_THAT(report.warnings(0),
              AllOf(HasSubstr("On fast, int8"), HasSubstr("would be better"),
                    HasSubstr("100 held-out samples")));
}

TEST(SearchTest, TheRecipeToKeepMakesTheSameGraph) {
  FakeFarm farm;
  Search search(Options());
  RunAll(farm, &search);
  const std::string name = search.Report().devices(0).recommended();
  const Trial* trial = search.Find(name);
  ASSERT_NE(trial, nullptr);
  const v1::Recipe kept = RecipeToKeep(trial->candidate, name);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::Recipe read,
      optimize::ParseRecipe(optimize::PrintRecipe(kept), "kept.yaml"));
  EXPECT_EQ(read.keep_float().SerializeAsString(),
            trial->candidate.recipe.keep_float().SerializeAsString());
  EXPECT_EQ(read.calibration().SerializeAsString(),
            trial->candidate.recipe.calibration().SerializeAsString());
  EXPECT_FALSE(read.verification().has_part());
}

TEST(ParetoChartTest, ShowsEveryVariantAndTheBound) {
  FakeFarm farm;
  Search search(Options());
  RunAll(farm, &search);
  const v1::TunedDevice device = search.Report().devices(0);
  const std::string svg = DrawPareto(device, v1::TuneReport::TOP1_CHANGE, -0.5);
  for (const v1::TunedVariant& variant : device.variants()) {
    EXPECT_THAT(svg, HasSubstr(absl::StrCat(">", variant.name(), "</text>")));
  }
  EXPECT_THAT(svg, HasSubstr("bound -0.5 points"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace optfarm::tune
