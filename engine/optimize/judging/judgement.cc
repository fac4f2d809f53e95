#include "engine/optimize/judging/judgement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "engine/optimize/judging/original_check.h"
#include "engine/optimize/layers/comparison.h"
#include "engine/optimize/samples/sample_choice.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

constexpr int64_t kDefaultCompared = 32;
// Where the share of the same best classes is judged: of 32 samples, one that
// is 92 % of many is below 90 % in one of four cases.
constexpr int64_t kDefaultClassified = 200;
constexpr int64_t kDefaultCalibration = 100;
constexpr size_t kMostWorstSamples = 10;
// UNITS: bytes. What is longer is no name for people.
constexpr size_t kLongestName = 100;

std::vector<int64_t> ChooseCalibration(const OptimizerInput& in) {
  const v1::Calibration& calibration = in.recipe->calibration();
  return in.dataset->Choose(calibration.max_samples() > 0
                                ? calibration.max_samples()
                                : kDefaultCalibration,
                            calibration.seed());
}

}  // namespace

Judgement::Judgement(const OptimizerInput& in)
    : in_(in), calibration_(ChooseCalibration(in)) {}

absl::Status Judgement::MeasureOriginal() {
  in_.Report("running the original", 0.1);
  OPTFARM_ASSIGN_OR_RETURN(guide_, MakeReference(in_, calibration_));
  // Where nothing is taken from the samples, all of them may judge.
  const bool learns =
      in_.recipe->has_calibration() || in_.recipe->has_keep_float();
  std::vector<int64_t> others = OtherSamples(
      learns ? calibration_ : std::vector<int64_t>(), in_.dataset->size());
  OPTFARM_ASSIGN_OR_RETURN(others, PartToJudge(std::move(others)));
  if (others.empty()) {
    judge_ = guide_;
    others = calibration_;
    if (!in_.dataset->is_random()) {
      warnings_.push_back(absl::StrCat(
          "The result was measured on the ", others.size(),
          " samples that it was calibrated on, because there are no others; "
          "give more data, or a smaller calibration.max_samples, for a "
          "judgement on samples it has not seen."));
    }
  } else {
    in_.Report("running the original", 0.13);
    OPTFARM_ASSIGN_OR_RETURN(
        judge_,
        MakeReference(in_, ChooseSome(others, SamplesToCompare(),
                                      in_.recipe->calibration().seed() + 1)));
  }
  scores_output_ =
      judge_.outputs.empty() ? -1 : ScoresOutput(in_, judge_.outputs[0]);
  if (scores_output_ < 0) {
    if (in_.data->Find(v1::DataSource::LABELS) < 0) {
      if (!in_.dataset->is_random()) {
        distrust_ = SuspectAnswers(judge_, scores_output_);
      }
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "Labels are given, but no output of the model is a row of class "
        "scores; leave the labels out or choose another output");
  }
  OPTFARM_RETURN_IF_ERROR(
      LabelSamples(judge_.outputs[0][scores_output_], others));
  return MeasureLabelled();
}

absl::StatusOr<std::vector<int64_t>> Judgement::PartToJudge(
    std::vector<int64_t> others) const {
  const v1::Verification& verification = in_.recipe->verification();
  if (!verification.has_part()) return others;
  const v1::SamplePart& wanted = verification.part();
  std::vector<int64_t> part =
      EveryNth(others, wanted.number() - 1, wanted.of());
  if (!part.empty()) return part;
  return absl::FailedPreconditionError(absl::StrCat(
      "verification.part asks for part ", wanted.number(), " of ", wanted.of(),
      " of the samples that calibration does not use, and there are ",
      others.size(), ": give more data, or a smaller calibration.max_samples"));
}

int64_t Judgement::SamplesToCompare() const {
  const int64_t wanted = in_.recipe->verification().samples();
  if (wanted > 0) return wanted;
  const bool has_classes =
      !guide_.outputs.empty() && ScoresOutput(in_, guide_.outputs[0]) >= 0;
  return has_classes ? kDefaultClassified : kDefaultCompared;
}

absl::Status Judgement::LabelSamples(const Tensor& scores,
                                     absl::Span<const int64_t> candidates) {
  const int64_t classes = ClassesOf(scores);
  const int64_t offset = in_.data->dataset.labels_offset();
  const int source = in_.data->Find(v1::DataSource::LABELS);
  if (source >= 0) {
    OPTFARM_ASSIGN_OR_RETURN(
        labels_, LoadLabels(in_.data->PathOf(source),
                            in_.data->dataset.sources(source).member(),
                            *in_.dataset, classes, offset));
  } else {
    OPTFARM_ASSIGN_OR_RETURN(labels_,
                             LabelsFromRecords(*in_.dataset, classes, offset));
    if (labels_.classes.empty()) {
      labels_ = GuessLabels(*in_.dataset, classes, offset);
      if (labels_.classes.empty() && offset != 0 &&
          !GuessLabels(*in_.dataset, classes).classes.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "with the labels' offset of ", offset,
            " the classes that the samples' folders stand for are beyond the "
            "model's ",
            classes, " classes, counted from 0 (--labels_offset)"));
      }
    }
  }
  if (labels_.classes.empty()) return absl::OkStatus();
  for (const int64_t i : candidates) {
    if (labels_.classes[i] >= 0) labelled_.push_back(i);
  }
  const int64_t most = in_.recipe->verification().max_labelled_samples();
  if (most > 0 && most < static_cast<int64_t>(labelled_.size())) {
    labelled_.resize(most);
  }
  return absl::OkStatus();
}

absl::Status Judgement::MeasureLabelled() {
  if (!labelled_.empty()) {
    in_.Report("running the original", 0.15);
    OPTFARM_ASSIGN_OR_RETURN(Answers answers,
                             AnswerLabelled(*in_.original, in_, scores_output_,
                                            labelled_, labels_.classes));
    OPTFARM_RETURN_IF_ERROR(CheckAnswers(std::move(answers)));
  }
  if (!float_answers_.has_value() && !in_.dataset->is_random()) {
    distrust_ = SuspectAnswers(judge_, scores_output_);
  }
  return absl::OkStatus();
}

absl::Status Judgement::CheckAnswers(Answers answers) {
  const int64_t classes = ClassesOf(judge_.outputs[0][scores_output_]);
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<OriginalDiagnosis> diagnosis,
                           DiagnoseLabelled(in_, {.scores = scores_output_,
                                                  .classes = classes,
                                                  .samples = labelled_,
                                                  .labels = labels_.classes,
                                                  .answers = &answers}));
  const double top1 = ToAccuracy(answers).top1();
  // Guessed labels may be about other classes than the model's, unless another
  // scale makes the model agree with them.
  const bool is_remedied = diagnosis.has_value() && diagnosis->is_remedied;
  if (labels_.guessed && !is_remedied &&
      top1 < 2 * 100 / static_cast<double>(classes)) {
    warnings_.push_back(absl::StrCat(
        "Labels were tried that come from ", labels_.source,
        ", but the original is right for only ", absl::StrFormat("%.1f", top1),
        " % of them, so they seem to be about other classes and are not used; "
        "give --labels, or --labels_offset."));
    labels_ = {};
    labelled_.clear();
    return absl::OkStatus();
  }
  if (diagnosis.has_value()) {
    if (!in_.recipe->verification().allow_chance_accuracy()) {
      return absl::FailedPreconditionError(absl::StrCat(
          diagnosis->text,
          ". (verification.allow_chance_accuracy in the recipe goes on "
          "all the same)"));
    }
    distrust_.push_back(absl::StrCat(diagnosis->text, "."));
  }
  float_answers_ = std::move(answers);
  return absl::OkStatus();
}

std::string Judgement::NameOf(int64_t label) const {
  absl::Span<const std::string> names = labels_.names;
  int64_t first = labels_.first_named;
  if (names.empty() && scores_output_ >= 0 &&
      static_cast<int64_t>(in_.class_names.size()) ==
          ClassesOf(judge_.outputs[0][scores_output_])) {
    names = in_.class_names;
    first = 0;
  }
  const int64_t place = label - first;
  if (label < 0 || place < 0 || place >= static_cast<int64_t>(names.size()) ||
      names[place].size() > kLongestName) {
    return "";
  }
  return ReplaceInvalidUtf8(names[place]);
}

absl::Status Judgement::Judge(Attempt* attempt) const {
  OPTFARM_ASSIGN_OR_RETURN(OutputComparison compared,
                           CompareWithReference(attempt->graph, in_, judge_));
  attempt->facts = attempt->guide;
  attempt->facts.outputs = std::move(compared.outputs);
  attempt->facts.detections = compared.detections;
  for (size_t i = 0; i < compared.samples.size(); ++i) {
    if (!labels_.classes.empty()) {
      compared.samples[i].set_label(labels_.classes[judge_.samples[i]]);
    }
  }
  std::stable_sort(
      compared.samples.begin(), compared.samples.end(),
      [](const auto& a, const auto& b) { return a.snr_db() < b.snr_db(); });
  for (v1::SampleComparison& sample : compared.samples) {
    if (attempt->worst_samples.size() == kMostWorstSamples) break;
    sample.set_float_class_name(NameOf(sample.float_class()));
    sample.set_optimized_class_name(NameOf(sample.optimized_class()));
    sample.set_label_name(NameOf(sample.label()));
    attempt->worst_samples.push_back(std::move(sample));
  }
  if (float_answers_.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(const Answers answers,
                             AnswerLabelled(attempt->graph, in_, scores_output_,
                                            labelled_, labels_.classes));
    attempt->facts.float_accuracy = ToAccuracy(*float_answers_);
    attempt->facts.optimized_accuracy = ToAccuracy(answers);
    attempt->paired = ComparePaired(float_answers_->is_top1, answers.is_top1);
    attempt->paired_top5 =
        ComparePaired(float_answers_->is_top5, answers.is_top5);
  }
  attempt->gates = CheckGates(in_.recipe->bounds(), attempt->facts);
  return absl::OkStatus();
}

}  // namespace optfarm::optimize
