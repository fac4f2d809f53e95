#include "engine/optimize/measurement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/optimize/comparison.h"
#include "engine/optimize/confidence.h"
#include "engine/optimize/sample_runs.h"
#include "engine/runtime/session.h"

namespace optfarm::optimize {
namespace {

using runtime::Session;
using runtime::Tensor;
using Values = std::vector<Tensor>;

// One thread: samples run at once, not the parts of one.
absl::StatusOr<std::unique_ptr<Session>> MakeSession(const graph::Graph& graph,
                                                     const OptimizerInput& in) {
  runtime::SessionOptions options;
  // What a model prints is its own affair.
  options.print = [](absl::string_view) {};
  return Session::Create(graph, in.inputs, in.outputs, options);
}

// Signal and noise of one sample over all outputs.
class SamplePower {
 public:
  void Add(const Tensor& original, const Tensor& result) {
    const auto a = ToFloat(original), b = ToFloat(result);
    if (!a.ok() || !b.ok() || !(a->shape() == b->shape())) return;
    const absl::Span<const float> from = a->flat<float>();
    const absl::Span<const float> to = b->flat<float>();
    for (size_t i = 0; i < from.size(); ++i) {
      if (!std::isfinite(from[i])) continue;
      const double error = static_cast<double>(from[i]) - to[i];
      signal_ += static_cast<double>(from[i]) * from[i];
      noise_ += error * error;
    }
  }

  double SnrDb() const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (std::isnan(noise_) || std::isinf(noise_)) return -kInfinity;
    return noise_ == 0 ? kInfinity : 10 * std::log10(signal_ / noise_);
  }

 private:
  double signal_ = 0;
  double noise_ = 0;
};

v1::SampleComparison CompareSample(const OptimizerInput& in, int64_t index,
                                   const Values& expected,
                                   const Values& outputs) {
  SamplePower power;
  for (size_t k = 0; k < outputs.size(); ++k) {
    power.Add(expected[k], outputs[k]);
  }
  v1::SampleComparison sample;
  sample.set_sample(in.dataset->SampleName(index));
  sample.set_snr_db(power.SnrDb());
  sample.set_float_class(-1);
  sample.set_optimized_class(-1);
  sample.set_label(-1);
  if (const int scores = ScoresOutput(expected); scores >= 0) {
    const auto best = [&](const Values& values) {
      return LargestElements(values[scores].flat<float>(), 1)[0];
    };
    sample.set_float_class(best(expected));
    if (outputs[scores].dtype() == tensorflow::DT_FLOAT &&
        outputs[scores].num_elements() > 0) {
      sample.set_optimized_class(best(outputs));
    }
  }
  return sample;
}

}  // namespace

int ScoresOutput(absl::Span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].dtype() == tensorflow::DT_FLOAT &&
        ClassesOf(outputs[i]) == outputs[i].num_elements()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

absl::StatusOr<Reference> MakeReference(const OptimizerInput& in,
                                        absl::Span<const int64_t> samples) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(*in.original, in));
  Reference reference;
  OPTFARM_RETURN_IF_ERROR(
      Annotate(RunSamples(*session, samples, in.threads, in.reader,
                          [&](size_t place, Values outputs) {
                            reference.samples.push_back(samples[place]);
                            reference.outputs.push_back(std::move(outputs));
                            return absl::OkStatus();
                          }),
               "While running the original model"));
  OPTFARM_RETURN_IF_ERROR(in.reader->CheckBad());
  return reference;
}

absl::StatusOr<OutputComparison> CompareWithReference(
    const graph::Graph& graph, const OptimizerInput& in,
    const Reference& reference) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(graph, in));
  OutputComparison result;
  std::vector<TensorComparer> comparers(in.outputs.size());
  // Samples for which the shape is another.
  std::vector<size_t> lost(in.outputs.size(), 0);
  const auto take = [&](size_t place, const Values& outputs) {
    const Values& expected = reference.outputs[place];
    for (size_t k = 0; k < outputs.size(); ++k) {
      // A detector finds another number of things.
      absl::Status status = comparers[k].Add(expected[k], outputs[k]);
      if (!status.ok() && !(expected[k].shape() == outputs[k].shape())) {
        if (++lost[k] == reference.samples.size()) return status;
        status = comparers[k].AddLost(expected[k]);
      }
      OPTFARM_RETURN_IF_ERROR(
          Annotate(status, absl::StrCat("While comparing output '",
                                        ToString(in.outputs[k]), "'")));
    }
    result.samples.push_back(
        CompareSample(in, reference.samples[place], expected, outputs));
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(Annotate(
      RunSamples(*session, reference.samples, in.threads, in.reader, take),
      "While running the optimized model"));
  for (size_t k = 0; k < comparers.size(); ++k) {
    v1::TensorComparison comparison = comparers[k].Result();
    comparison.set_name(ToString(in.outputs[k]));
    const graph::NodeId id = in.original->Find(in.outputs[k].node);
    if (id != graph::kNoNode) {
      comparison.set_op(in.original->node(id).op());
    }
    result.outputs.push_back(std::move(comparison));
  }
  return result;
}

absl::StatusOr<Answers> AnswerLabelled(const graph::Graph& graph,
                                       const OptimizerInput& in, int scores,
                                       absl::Span<const int64_t> samples,
                                       absl::Span<const int64_t> labels) {
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           MakeSession(graph, in));
  Answers answers;
  const auto take = [&](size_t place, const Values& outputs) {
    AccuracyCounter counter;
    counter.Add(outputs[scores], labels[samples[place]]);
    answers.is_top1.push_back(counter.Result().top1() > 0);
    answers.is_top5.push_back(counter.Result().top5() > 0);
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(
      RunSamples(*session, samples, in.threads, in.reader, take));
  OPTFARM_RETURN_IF_ERROR(in.reader->CheckBad());
  return answers;
}

v1::Accuracy ToAccuracy(const Answers& answers) {
  const auto percent = [](const std::vector<bool>& right) {
    return right.empty() ? 0.0
                         : 100.0 *
                               static_cast<double>(std::count(
                                   right.begin(), right.end(), true)) /
                               static_cast<double>(right.size());
  };
  v1::Accuracy accuracy;
  accuracy.set_samples(static_cast<int64_t>(answers.is_top1.size()));
  accuracy.set_top1(percent(answers.is_top1));
  accuracy.set_top5(percent(answers.is_top5));
  return accuracy;
}

v1::PairedAccuracy ComparePaired(const std::vector<bool>& original,
                                 const std::vector<bool>& optimized) {
  PairedCounts counts;
  for (size_t i = 0; i < original.size(); ++i) {
    ++counts.samples;
    counts.only_first_right += original[i] && !optimized[i];
    counts.only_second_right += !original[i] && optimized[i];
  }
  v1::PairedAccuracy paired;
  paired.set_samples(counts.samples);
  paired.set_only_float_right(counts.only_first_right);
  paired.set_only_optimized_right(counts.only_second_right);
  if (counts.samples > 0) {
    paired.set_change(100.0 *
                      static_cast<double>(counts.only_second_right -
                                          counts.only_first_right) /
                      static_cast<double>(counts.samples));
  }
  const Interval interval = PairedInterval(counts);
  paired.set_change_low(100 * interval.low);
  paired.set_change_high(100 * interval.high);
  paired.set_p_value(McNemarProbability(counts));
  return paired;
}

}  // namespace optfarm::optimize
