#include "engine/runtime/core/immutable_const.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engine/runtime/session/session.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::StringAttr;
using ::optfarm::testing::TypeAttr;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 64-aligned memory with four floats, as a package would hold them.
std::shared_ptr<const void> FourFloats() {
  auto memory = std::shared_ptr<void>(std::aligned_alloc(64, 64), std::free);
  const float values[] = {1, 2, 3, 4};
  std::memcpy(memory.get(), values, sizeof(values));
  return memory;
}

RegionFinder Regions(std::shared_ptr<const void> memory, size_t offset = 0,
                     size_t bytes = 16) {
  return [=](const std::string& name) -> absl::StatusOr<SharedBytes> {
    if (name != "memmapped_package://w") return absl::NotFoundError(name);
    const char* begin = static_cast<const char*>(memory.get()) + offset;
    return SharedBytes{absl::string_view(begin, bytes), memory};
  };
}

tensorflow::NodeDef Node(tensorflow::DataType dtype, int64_t elements) {
  GraphBuilder b;
  tensorflow::AttrValue shape;
  shape.mutable_shape()->add_dim()->set_size(elements);
  return b.Node("w", "ImmutableConst", {},
                {{"dtype", TypeAttr(dtype)},
                 {"shape", shape},
                 {"memory_region_name", StringAttr("memmapped_package://w")}});
}

TEST(ImmutableConstTest, IsUsedWhereItLies) {
  const auto memory = FourFloats();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Tensor value,
      ReadImmutableConst(Node(tensorflow::DT_FLOAT, 4), Regions(memory)));
  EXPECT_EQ(value.raw(), memory.get());
  EXPECT_FALSE(value.IsSoleOwner());
  EXPECT_THAT(value.flat<float>(), ElementsAre(1, 2, 3, 4));
}

TEST(ImmutableConstTest, KeepsTheMemoryThatItReads) {
  auto memory = FourFloats();
  const std::weak_ptr<const void> watch = memory;
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Tensor value, ReadImmutableConst(Node(tensorflow::DT_FLOAT, 4),
                                               Regions(std::move(memory))));
    EXPECT_FALSE(watch.expired());
    EXPECT_FALSE(value.Reshaped(Shape({2, 2})).IsSoleOwner());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ImmutableConstTest, CopiesWhatIsNotAligned) {
  const auto memory = FourFloats();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Tensor value,
                               ReadImmutableConst(Node(tensorflow::DT_FLOAT, 3),
                                                  Regions(memory, 4, 12)));
  EXPECT_THAT(value.flat<float>(), ElementsAre(2, 3, 4));
}

TEST(ImmutableConstTest, RefusesWhatDoesNotFit) {
  const auto memory = FourFloats();
  EXPECT_THAT(
      ReadImmutableConst(Node(tensorflow::DT_FLOAT, 5), Regions(memory)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs more")));
  EXPECT_THAT(
      ReadImmutableConst(Node(tensorflow::DT_FLOAT, int64_t{1} << 62),
                         Regions(memory)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs more")));
  EXPECT_THAT(
      ReadImmutableConst(Node(tensorflow::DT_STRING, 1), Regions(memory)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("string")));
  EXPECT_THAT(ReadImmutableConst(Node(tensorflow::DT_FLOAT, 4), nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("load the package")));
}

TEST(ImmutableConstTest, FeedsASessionThatDoesNotWriteToIt) {
  const auto memory = FourFloats();
  GraphBuilder b;
  *b.mutable_def()->add_node() = Node(tensorflow::DT_FLOAT, 4);
  b.Placeholder("x", {4});
  b.Node("first", "Relu", {"w"}, FloatT());
  b.Node("sum", "Add", {"first", "x"}, FloatT());
  SessionOptions options;
  options.find_region = Regions(memory);
  for (const bool fold : {false, true}) {
    options.fold_constants = fold;
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto session,
        Session::Create(b.Build(), {{"x", 0}}, {{"sum", 0}}, options));
    const Tensor x = Tensor::FromValues<float>(Shape({4}), {-9, 1, 1, 1});
    for (int run = 0; run < 2; ++run) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto results, session->Run({x}));
      EXPECT_THAT(results[0].flat<float>(), ElementsAre(-8, 3, 4, 5));
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
