// openpose normalizes by the statistics of the one picture that it sees, 39
// times, and what its channels vary in is in some of them little more than
// rounding: single precision does not determine its answers to 1e-4. These
// tests compare them with the same graph in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/session/session.h"
#include "tests/golden/double_precision.h"
#include "tests/golden/golden_case.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using runtime::Session;
using runtime::Tensor;

double At(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == tensorflow::DT_DOUBLE
             ? tensor.data<double>()[i]
             : double{tensor.data<float>()[i]};
}

// The largest difference, relative to the largest exact value.
double Distance(const Tensor& got, const Tensor& exact) {
  EXPECT_EQ(got.num_elements(), exact.num_elements());
  double difference = 0, largest = 1e-30;
  for (int64_t i = 0; i < exact.num_elements(); ++i) {
    const double error = std::abs(At(got, i) - At(exact, i));
    // Written so that NaN counts as a difference.
    if (!(error <= difference)) difference = error;
    largest = std::max(largest, std::abs(At(exact, i)));
  }
  return difference / largest;
}

class ExactAnswersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OPTFARM_REQUIRE_TEST_DATA();
    golden_ = std::make_unique<GoldenCase>("openpose_mnv2");
    single_ = runtime::LoadedModel::Create(golden_->Original());
    double_ =
        runtime::LoadedModel::Create(DoublePrecision::Of(golden_->Original()));
  }

  std::unique_ptr<Session> MakeSession(
      const std::shared_ptr<const runtime::LoadedModel>& model,
      const std::vector<graph::TensorName>& feeds,
      const std::vector<graph::TensorName>& fetches, bool is_fast) {
    runtime::SessionOptions options;
    options.threads = 2;
    options.fast_kernels = is_fast;
    return Session::Create(model, feeds, fetches, options).value();
  }
  std::unique_ptr<Session> Whole(
      const std::shared_ptr<const runtime::LoadedModel>& model, bool is_fast) {
    return MakeSession(model, golden_->Inputs(), golden_->Outputs(), is_fast);
  }

  std::unique_ptr<GoldenCase> golden_;
  std::shared_ptr<const runtime::LoadedModel> single_;
  std::shared_ptr<const runtime::LoadedModel> double_;
};

TEST_F(ExactAnswersTest, TensorFlowsOwnAnswersAreFartherFromThemThanIsAsked) {
  const auto exact = Whole(double_, false);
  double farthest = 0;
  for (int sample = 0; sample < golden_->samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto answers, exact->Run({ToDouble(golden_->Feeds(sample)[0])}));
    const double distance =
        Distance(golden_->Answer("", 0, sample), answers[0]);
    EXPECT_LE(distance, 1e-3);
    farthest = std::max(farthest, distance);
  }
  RecordProperty("farthest", absl::StrCat(farthest));
  EXPECT_GT(farthest, 2e-4);
}

// `picture` with each value moved to one of its neighbours.
Tensor WithOtherLastBits(const Tensor& picture, std::mt19937* random) {
  Tensor changed =
      Tensor::Allocate(tensorflow::DT_FLOAT, picture.shape()).value();
  for (int64_t i = 0; i < picture.num_elements(); ++i) {
    const float value = picture.data<float>()[i];
    const float side = ((*random)() & 1) != 0 ? 1e30f : -1e30f;
    changed.data<float>()[i] = std::nextafter(value, side);
  }
  return changed;
}

TEST_F(ExactAnswersTest, FastKernelsAreAsNearToThemAsReferenceKernels) {
  const auto exact = Whole(double_, false);
  const auto reference = Whole(single_, false);
  const auto fast = Whole(single_, true);
  std::mt19937 random(7);
  // The picture on which the two differ most, and such that no eye and no
  // camera tells from it.
  Tensor picture = golden_->Feeds(0)[0];
  double of_reference = 0, of_fast = 0;
  constexpr int kPictures = 6;
  for (int i = 0; i < kPictures; ++i) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto wanted,
                                 exact->Run({ToDouble(picture)}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto a, reference->Run({picture}));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto b, fast->Run({picture}));
    of_reference = std::max(of_reference, Distance(a[0], wanted[0]));
    of_fast = std::max(of_fast, Distance(b[0], wanted[0]));
    picture = WithOtherLastBits(golden_->Feeds(0)[0], &random);
  }
  RecordProperty("reference", absl::StrCat(of_reference));
  RecordProperty("fast", absl::StrCat(of_fast));
  EXPECT_LE(of_fast, 2 * of_reference);
}

// Each layer by itself, on what the exact net gives it: there nothing grows.
TEST_F(ExactAnswersTest, EveryFastConvolutionIsAsExactAsTheReferenceKernels) {
  std::vector<graph::TensorName> inputs, outputs;
  const graph::Graph original = golden_->Original();
  for (const graph::NodeId id : original.Ids()) {
    const graph::Node& node = original.node(id);
    if (node.op() != "Conv2D" && node.op() != "DepthwiseConv2dNative") continue;
    inputs.push_back(
        graph::ParseTensorName(original.NameOf(node.inputs()[0])).value());
    outputs.push_back({node.name(), 0});
  }
  ASSERT_GT(outputs.size(), 100u);
  double largest = 0;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto given, MakeSession(double_, golden_->Inputs(), inputs, false)
                            ->Run({ToDouble(golden_->Feeds(0)[0])}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor input =
        Tensor::Allocate(tensorflow::DT_FLOAT, given[i].shape()).value();
    std::transform(given[i].data<double>(),
                   given[i].data<double>() + given[i].num_elements(),
                   input.data<float>(),
                   [](double value) { return static_cast<float>(value); });
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto wanted,
        MakeSession(double_, {inputs[i]}, {outputs[i]}, false)
            ->Run({ToDouble(input)}));
    double distances[2];
    for (const bool is_fast : {false, true}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const auto got,
          MakeSession(single_, {inputs[i]}, {outputs[i]}, is_fast)
              ->Run({input}));
      distances[is_fast ? 1 : 0] = Distance(got[0], wanted[0]);
    }
    EXPECT_LE(distances[1], 2 * distances[0] + 5e-7) << outputs[i].node;
    largest = std::max(largest, distances[1]);
  }
  // Where large terms cancel out.
  EXPECT_LE(largest, 1e-5);
}

}  // namespace
}  // namespace optfarm::testing
