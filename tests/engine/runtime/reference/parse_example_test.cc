// Serialized examples to tensors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "tensorflow/core/example/example.pb.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kFloat = tensorflow::DT_FLOAT;
constexpr auto kInt64 = tensorflow::DT_INT64;
constexpr auto kString = tensorflow::DT_STRING;

Tensor Text(const std::string& text) {
  return Tensor::Scalar<std::string>(text);
}

class ExampleMaker {
 public:
  ExampleMaker& Floats(const std::string& key,
                       const std::vector<float>& values) {
    auto* list = Of(key)->mutable_float_list();
    for (float value : values) list->add_value(value);
    return *this;
  }
  ExampleMaker& Ints(const std::string& key,
                     const std::vector<int64_t>& values) {
    auto* list = Of(key)->mutable_int64_list();
    for (int64_t value : values) list->add_value(value);
    return *this;
  }
  ExampleMaker& Texts(const std::string& key,
                      const std::vector<std::string>& values) {
    auto* list = Of(key)->mutable_bytes_list();
    for (const std::string& value : values) list->add_value(value);
    return *this;
  }
  std::string Bytes() const { return example_.SerializeAsString(); }

 private:
  tensorflow::Feature* Of(const std::string& key) {
    return &(*example_.mutable_features()->mutable_feature())[key];
  }
  tensorflow::Example example_;
};

Tensor Batch(const std::vector<ExampleMaker>& examples) {
  std::vector<std::string> texts;
  for (const ExampleMaker& example : examples) texts.push_back(example.Bytes());
  return Tensor::FromValues<std::string>(
      Shape{static_cast<int64_t>(texts.size())}, texts);
}

// A node of one sparse and one dense feature.
tensorflow::NodeDef Node(const std::string& op, DataType sparse, DataType dense,
                         const std::vector<int64_t>& dense_dims) {
  tensorflow::NodeDef node;
  node.set_name("n");
  node.set_op(op);
  (*node.mutable_attr())["sparse_types"].mutable_list()->add_type(sparse);
  (*node.mutable_attr())["Tdense"].mutable_list()->add_type(dense);
  auto* shape =
      (*node.mutable_attr())["dense_shapes"].mutable_list()->add_shape();
  for (int64_t dim : dense_dims) shape->add_dim()->set_size(dim);
  for (const char* name : {"Nsparse", "Ndense", "num_sparse"}) {
    graph::SetInt(&node, name, 1);
  }
  return node;
}

absl::StatusOr<std::vector<Tensor>> Parse(const Tensor& serialized,
                                          const Tensor& absent,
                                          const std::vector<int64_t>& dims) {
  const std::vector<Tensor> inputs = {
      serialized, Tensor::FromValues<std::string>(Shape{0}, {}), Text("s"),
      Text("d"), absent};
  return EvaluateNode(Node("ParseExample", kInt64, kFloat, dims), inputs, 4);
}

const Tensor kNoDefault = Floats({0}, {});

TEST(ParseExampleTest, ABatchOfSparseAndDenseFeatures) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      Parse(Batch({ExampleMaker().Ints("s", {7, 8}).Floats("d", {1, 2}),
                   ExampleMaker().Floats("d", {3, 4}),
                   ExampleMaker().Ints("s", {9}).Floats("d", {5, 6})}),
            kNoDefault, {2}));
  EXPECT_EQ(out[0].shape(), (Shape{3, 2}));
  EXPECT_THAT(ValuesOf<int64_t>(out[0]), ElementsAre(0, 0, 0, 1, 2, 0));
  EXPECT_THAT(ValuesOf<int64_t>(out[1]), ElementsAre(7, 8, 9));
  EXPECT_THAT(ValuesOf<int64_t>(out[2]), ElementsAre(3, 2));
  EXPECT_EQ(out[3].shape(), (Shape{3, 2}));
  EXPECT_THAT(ValuesOf<float>(out[3]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(ParseExampleTest, AnAbsentDenseFeatureHasItsDefault) {
  const Tensor batch =
      Batch({ExampleMaker().Floats("d", {1, 2}), ExampleMaker()});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out,
                               Parse(batch, Floats({2}, {8, 9}), {2}));
  EXPECT_THAT(ValuesOf<float>(out[3]), ElementsAre(1, 2, 8, 9));
  EXPECT_THAT(Parse(batch, kNoDefault, {2}),
              StatusIs(kInvalid, HasSubstr("example 1 lacks feature 'd'")));
}

TEST(ParseExampleTest, AnyLengthIsPaddedToTheLongest) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto out,
      Parse(Batch({ExampleMaker().Floats("d", {1, 2, 3, 4}), ExampleMaker(),
                   ExampleMaker().Floats("d", {5, 6})}),
            Floats({1}, {-1}), {-1, 2}));
  EXPECT_EQ(out[3].shape(), (Shape{3, 2, 2}));
  EXPECT_THAT(ValuesOf<float>(out[3]),
              ElementsAre(1, 2, 3, 4, -1, -1, -1, -1, 5, 6, -1, -1));
}

TEST(ParseExampleTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(Parse(Batch({ExampleMaker().Ints("d", {1})}), kNoDefault, {1}),
              StatusIs(kInvalid, HasSubstr("'d' is not of float")));
  EXPECT_THAT(Parse(Batch({ExampleMaker().Floats("d", {1})}), kNoDefault, {2}),
              StatusIs(kInvalid, HasSubstr("has 1 values")));
  EXPECT_THAT(Parse(Tensor::FromValues<std::string>(Shape{1}, {{"\xff\xff"}}),
                    kNoDefault, {1}),
              StatusIs(kInvalid, HasSubstr("no tensorflow.Example")));
}

TEST(ParseExampleTest, OneExampleHasNoBatch) {
  tensorflow::NodeDef node = Node("ParseSingleExample", kString, kInt64, {2});
  (*node.mutable_attr())["sparse_keys"].mutable_list()->add_s("s");
  (*node.mutable_attr())["dense_keys"].mutable_list()->add_s("d");
  const std::vector<Tensor> inputs = {
      Text(ExampleMaker().Texts("s", {"x", "y"}).Ints("d", {4, 5}).Bytes()),
      Tensor::FromValues<int64_t>(Shape{0}, {})};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto out, EvaluateNode(node, inputs, 4));
  EXPECT_EQ(out[0].shape(), (Shape{2, 1}));
  EXPECT_THAT(ValuesOf<int64_t>(out[0]), ElementsAre(0, 1));
  EXPECT_THAT(ValuesOf<std::string>(out[1]), ElementsAre("x", "y"));
  EXPECT_THAT(ValuesOf<int64_t>(out[2]), ElementsAre(2));
  EXPECT_EQ(out[3].shape(), (Shape{2}));
  EXPECT_THAT(ValuesOf<int64_t>(out[3]), ElementsAre(4, 5));
}

TEST(ParseTensorTest, ATensorComesBackFromItsBytes) {
  const Tensor x = Floats({2, 2}, {1, 2, 3, 4});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor bytes,
                               Op("SerializeTensor").In(x).Run());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor back,
      Op("ParseTensor").Type("out_type", kFloat).In(bytes).Run());
  EXPECT_EQ(back.shape(), x.shape());
  EXPECT_EQ(ValuesOf<float>(back), ValuesOf<float>(x));
  EXPECT_FALSE(Op("ParseTensor").Type("out_type", kInt64).In(bytes).Run().ok());
  EXPECT_THAT(
      Op("ParseTensor").Type("out_type", kFloat).In(Text("\xff\xff")).Run(),
      StatusIs(kInvalid, HasSubstr("no tensorflow.TensorProto")));
}

}  // namespace
}  // namespace optfarm::runtime
