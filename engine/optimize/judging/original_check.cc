#include "engine/optimize/judging/original_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/optimize/samples/sample_choice.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

// Enough to tell a model that works from one that does not.
constexpr int64_t kTriedSamples = 40;
constexpr int64_t kLeastSamples = 20;
constexpr int64_t kLeastSamplesOfFewClasses = 50;
constexpr int64_t kFewClasses = 10;
constexpr double kNearlyAll = 0.95;

// A scale that models are commonly trained with.
struct PixelScale {
  absl::string_view name;
  std::vector<double> mean;
  std::vector<double> std;
};

const std::vector<PixelScale>& UsualScales() {
  static const auto* const kScales = new std::vector<PixelScale>{
      {"-1..1", {127.5}, {127.5}},
      {"0..1", {0}, {255}},
      {"0..255", {0}, {1}},
      {"ImageNet's mean and deviation",
       {123.675, 116.28, 103.53},
       {58.395, 57.12, 57.375}},
      {"ImageNet's mean subtracted", {123.68, 116.779, 103.939}, {1}},
  };
  return *kScales;
}

std::string Numbers(const std::vector<double>& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, double value) {
    absl::StrAppend(out, absl::StrFormat("%g", value));
  });
}

// How to ask for a scale, in optctl's words and in the recipe's.
std::string HowToGive(const PixelScale& scale) {
  if (scale.mean.size() == 1) {
    return absl::StrFormat("give --input_mean=%g --input_std=%g", scale.mean[0],
                           scale.std[0]);
  }
  return absl::StrCat("set calibration.preprocessing in the recipe to mean: [",
                      Numbers(scale.mean), "], std: [", Numbers(scale.std),
                      "]");
}

bool IsEqual(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.dtype() != tensorflow::DT_STRING && !a.is_handle() &&
         std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0;
}

// Three deviations above chance, on however few samples.
bool IsClearlyBetterThanChance(int64_t right, int64_t samples,
                               int64_t classes) {
  const double p = 1.0 / static_cast<double>(classes);
  const auto n = static_cast<double>(samples);
  return static_cast<double>(right) >= n * p + 3 * std::sqrt(n * p * (1 - p));
}

int64_t CountRight(const Answers& answers) {
  return std::count(answers.is_top1.begin(), answers.is_top1.end(), true);
}

struct Trial {
  int64_t right = 0;
  int64_t samples = 0;
  // What was changed, and how to ask for it.
  std::string what;
  std::string remedy;
};

// The original on some of the samples. nullopt when they cannot be made so: the
// data has no pixels, or other numbers of channels.
std::optional<Trial> TryScale(const OptimizerInput& in,
                              const LabelledOriginal& labelled,
                              absl::Span<const int64_t> samples,
                              const PixelScale& scale) {
  v1::Preprocessing preprocessing = in.recipe->calibration().preprocessing();
  preprocessing.mutable_mean()->Assign(scale.mean.begin(), scale.mean.end());
  preprocessing.mutable_std()->Assign(scale.std.begin(), scale.std.end());
  const absl::StatusOr<Dataset> dataset = in.open_data(preprocessing);
  if (!dataset.ok() || dataset->size() != in.dataset->size()) {
    return std::nullopt;
  }
  SampleReader reader(*dataset);
  OptimizerInput scaled = in;
  scaled.dataset = &*dataset;
  scaled.reader = &reader;
  const absl::StatusOr<Answers> answers = AnswerLabelled(
      *in.original, scaled, labelled.scores, samples, labelled.labels);
  if (!answers.ok()) return std::nullopt;
  return Trial{CountRight(*answers),
               static_cast<int64_t>(answers->is_top1.size()),
               absl::StrCat("pixels scaled to ", scale.name), HowToGive(scale)};
}

absl::StatusOr<Trial> TryShift(const OptimizerInput& in,
                               const LabelledOriginal& labelled,
                               absl::Span<const int64_t> samples, int shift) {
  std::vector<int64_t> labels(labelled.labels.begin(), labelled.labels.end());
  for (int64_t& label : labels) {
    if (label >= 0) label += shift;
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Answers answers,
      AnswerLabelled(*in.original, in, labelled.scores, samples, labels));
  const int64_t offset = in.data->dataset.labels_offset() + shift;
  return Trial{CountRight(answers),
               static_cast<int64_t>(answers.is_top1.size()),
               absl::StrFormat("labels %+d", shift),
               absl::StrCat("give --labels_offset=", offset)};
}

absl::StatusOr<std::vector<Trial>> TryRemedies(
    const OptimizerInput& in, const LabelledOriginal& labelled) {
  const std::vector<int64_t> samples =
      ChooseSome({labelled.samples.begin(), labelled.samples.end()},
                 kTriedSamples, in.recipe->calibration().seed());
  std::vector<Trial> trials;
  if (in.open_data) {
    for (const PixelScale& scale : UsualScales()) {
      std::optional<Trial> trial = TryScale(in, labelled, samples, scale);
      if (trial.has_value()) trials.push_back(*std::move(trial));
    }
  }
  for (const int shift : {1, -1}) {
    OPTFARM_ASSIGN_OR_RETURN(trials.emplace_back(),
                             TryShift(in, labelled, samples, shift));
  }
  return trials;
}

}  // namespace

bool IsNoBetterThanChance(int64_t right, int64_t samples, int64_t classes) {
  const bool few = classes < kFewClasses;
  if (samples < (few ? kLeastSamplesOfFewClasses : kLeastSamples) ||
      classes < 2) {
    return false;
  }
  // The binomial distribution's mean and deviation. A model that is right
  // three times out of four for two classes must not be taken for one that
  // guesses, so few classes are given less room.
  const double p = 1.0 / static_cast<double>(classes);
  const auto n = static_cast<double>(samples);
  const double deviation = std::sqrt(n * p * (1 - p));
  return static_cast<double>(right) <= n * p + (few ? 1 : 2) * deviation;
}

absl::StatusOr<std::optional<OriginalDiagnosis>> DiagnoseLabelled(
    const OptimizerInput& in, const LabelledOriginal& labelled) {
  const int64_t right = CountRight(*labelled.answers);
  const auto samples = static_cast<int64_t>(labelled.answers->is_top1.size());
  if (!IsNoBetterThanChance(right, samples, labelled.classes)) {
    return std::nullopt;
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Trial> trials,
                           TryRemedies(in, labelled));
  OriginalDiagnosis diagnosis;
  diagnosis.text = absl::StrCat(
      "The original model is right on ", right, " of ", samples,
      " labelled samples, no better than guessing among ", labelled.classes,
      " classes, so that agreeing with it says nothing. It was fed ",
      absl::StrJoin(in.dataset->fed(), "; "), ". ");
  const auto best = std::max_element(
      trials.begin(), trials.end(),
      [](const Trial& a, const Trial& b) { return a.right < b.right; });
  if (IsClearlyBetterThanChance(best->right, best->samples, labelled.classes)) {
    diagnosis.is_remedied = true;
    absl::StrAppend(&diagnosis.text, "With ", best->what, " it is right on ",
                    best->right, " of ", best->samples, ": ", best->remedy);
    return diagnosis;
  }
  absl::StrAppend(
      &diagnosis.text, "Tried without success on ", best->samples, " samples: ",
      absl::StrJoin(trials, ", ",
                    [](std::string* out, const Trial& trial) {
                      absl::StrAppend(out, trial.what, " (", trial.right,
                                      " right)");
                    }),
      ". Check the order of the labels, that of the color channels and which "
      "output is compared");
  return diagnosis;
}

std::vector<std::string> SuspectAnswers(const Reference& reference,
                                        int scores) {
  std::vector<std::string> reasons;
  const auto samples = static_cast<int64_t>(reference.outputs.size());
  if (samples < kLeastSamples) return reasons;
  bool all_equal = true;
  for (const std::vector<Tensor>& outputs : reference.outputs) {
    for (size_t k = 0; k < outputs.size() && all_equal; ++k) {
      const Tensor& first = reference.outputs[0][k];
      all_equal = IsEqual(outputs[k], first);
    }
  }
  if (all_equal) {
    reasons.push_back(absl::StrCat(
        "The original gives exactly the same answer for all ", samples,
        " samples; check what it is fed, above all its scale."));
    return reasons;
  }
  if (scores < 0) return reasons;
  const int64_t classes = ClassesOf(reference.outputs[0][scores]);
  if (classes < kFewClasses) return reasons;
  std::map<int64_t, int64_t> counts;
  for (const std::vector<Tensor>& outputs : reference.outputs) {
    ++counts[LargestElements(outputs[scores].flat<float>(), 1)[0]];
  }
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (static_cast<double>(most->second) >=
      kNearlyAll * static_cast<double>(samples)) {
    reasons.push_back(absl::StrCat(
        "The original answers class ", most->first, " for ", most->second,
        " of ", samples,
        " samples; unless they are all of that class, what it "
        "is fed is wrong, most often its scale (--input_mean, --input_std)."));
  }
  return reasons;
}

}  // namespace optfarm::optimize
