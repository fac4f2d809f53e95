#include "engine/optimize/recipes/recipes.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "engine/optimize/recipes/recipe_steps.h"
#include "engine/transforms/machinery/transform_string.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(RecipesTest, BuiltInsParseAndPrintBack) {
  EXPECT_THAT(
      BuiltInRecipeNames(),
      ElementsAre("fp32", "int8", "int8-fast", "int8-tf14", "weights8",
                  "weights8-per-channel", "weights4", "fp16-weights", "round"));
  for (const std::string& name : BuiltInRecipeNames()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe recipe, BuiltInRecipe(name));
    EXPECT_EQ(recipe.name(), name);
    const std::string yaml = PrintRecipe(recipe);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe again,
                                 ParseRecipe(yaml, "printed"));
    EXPECT_TRUE(MessageDifferencer::Equals(recipe, again)) << yaml;
    EXPECT_EQ(PrintRecipe(again), yaml);
  }
}

TEST(RecipesTest, HasTensorFlowsChainForComparison) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe tf, BuiltInRecipe("int8-tf14"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto steps, StepsOfRecipe(tf));
  EXPECT_FALSE(tf.has_bounds());
  EXPECT_EQ(transforms::PrintTransforms(steps),
            "add_default_attributes strip_unused_nodes "
            "remove_nodes(op=Identity, op=CheckNumerics) "
            "fold_constants(ignore_errors=true) fold_batch_norms "
            "fold_old_batch_norms quantize_weights quantize_nodes "
            "strip_unused_nodes sort_by_execution_order");
}

TEST(RecipesTest, Int8AndItsFastFormRunOneChain) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe safe, BuiltInRecipe("int8"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe fast,
                               BuiltInRecipe("int8-fast"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto steps, StepsOfRecipe(safe));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto fast_steps, StepsOfRecipe(fast));
  EXPECT_EQ(transforms::PrintTransforms(steps),
            transforms::PrintTransforms(fast_steps));
  EXPECT_THAT(transforms::PrintTransforms(steps), HasSubstr("quantize_layers"));
  EXPECT_GT(safe.keep_float().layer_attempts(), 0);
  EXPECT_EQ(fast.keep_float().layer_attempts(), 0);
  // What costs nothing in the result is the same.
  EXPECT_TRUE(safe.keep_float().adapt_rounding());
  EXPECT_TRUE(fast.keep_float().adapt_rounding());
  EXPECT_EQ(safe.keep_float().input_layers_gain_db(), 3);
  EXPECT_FALSE(fast.keep_float().has_input_layers_gain_db());
}

TEST(RecipesTest, ReadsEveryKindOfField) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe recipe, ParseRecipe(R"(
name: mine
transforms:
  - strip_unused_nodes: {type: float, shape: [1, 224, 224, 3]}
  - remove_nodes:
      op: [Identity]
calibration:
  max_samples: 7
  seed: 18446744073709551615
  range_method: moving_average
  required: true
  preprocessing:
    resize: shorter_side
    channel_order: bgr
    mean: [104, 117.5, 123]
    std: 1
bounds:
  max_accuracy_drop: 0.5
)",
                                                                    "'x'"));
  EXPECT_EQ(recipe.transforms(0).params(1).value(), "1,224,224,3");
  EXPECT_EQ(recipe.transforms(1).params(0).value(), "Identity");
  EXPECT_EQ(recipe.calibration().seed(), 18446744073709551615u);
  EXPECT_EQ(recipe.calibration().range_method(),
            v1::Calibration::MOVING_AVERAGE);
  EXPECT_EQ(recipe.calibration().preprocessing().mean_size(), 3);
  EXPECT_EQ(recipe.calibration().preprocessing().std(0), 1);
  EXPECT_TRUE(recipe.bounds().has_max_accuracy_drop());
  EXPECT_FALSE(recipe.bounds().has_min_snr_db());
}

TEST(RecipesTest, MistakesAreNamedWithTheirLine) {
  const std::string head = "name: a\ntransforms: [fold_constants]\n";
  const struct {
    std::string yaml;
    const char* says;
  } kCases[] = {
      {head + "bound: {}\n",
       "line 3: 'bound' is not a key of recipes; the "
       "nearest is 'bounds'"},
      {head + "bounds:\n  min_snr_db: high\n",
       "line 4: bounds.min_snr_db must be a number, not 'high'"},
      {head + "bounds:\n  min_top1_agreement: 90\n",
       "line 4: bounds.min_top1_agreement: 90 is out of range; give 0 to 1"},
      {head + "calibration: {range_method: median}\n",
       "line 3: calibration.range_method must be one of min_max, percentile, "
       "moving_average, mse, kl"},
      {head + "calibration: [1]\n", "line 3: calibration. must be a map"},
      {head + "name: b\n", "line 3: name is given twice"},
      {"name: a\ntransforms:\n  - fold_constant\n", "line 3: transforms"},
      {"name: a\ntransforms:\n  - fold_constant\n", "'fold_constants'"},
      {"name: a\ntransforms:\n  - fold_constants: {ignore_error: 1}\n",
       "ignore_errors"},
      {"name: a\ntransforms: fold_constants\n",
       "line 2: transforms must be a list"},
      {"name: a\n", "transforms: there are 0"},
      {"name: 'a b'\ntransforms: [fold_constants]\n",
       "line 1: name: 'a b' cannot be a name"},
      {"name: float\ntransforms: [fold_constants]\n", "another name"},
      {head + "transform_string: fold_constants\n", "not both"},
      {"a: [\n", "line 2"},
      {"", "must be a map"},
      {head + "keep_float: {layer_attempts: 99}\n", "give 0 to 32"},
      {head + "calibration: {preprocessing: {std: 0}}\n", "out of range"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(
        ParseRecipe(test.yaml, "'r.yaml'"),
        StatusIs(kInvalid, AllOf(HasSubstr("'r.yaml'"), HasSubstr(test.says))))
        << test.yaml;
  }
}

TEST(RecipesTest, DeepNestingIsRefused) {
  EXPECT_THAT(ParseRecipe(std::string(100000, '['), "x"),
              StatusIs(kInvalid, HasSubstr("x")));
}

TEST(RecipesTest, LoadsByNameAndByPath) {
  EXPECT_THAT(LoadRecipe("int9"), StatusIs(absl::StatusCode::kNotFound,
                                           HasSubstr("the nearest is 'int8'")));
  EXPECT_THAT(LoadRecipe("frobnicate"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("give one of "), HasSubstr("fp32"),
                             HasSubstr("weights8"))));
  EXPECT_THAT(LoadRecipe("none.yaml"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.yaml")));
  const std::string path =
      JoinPath(optfarm::testing::FreshFolder(), "mine.yaml");
  OPTFARM_ASSERT_OK(WriteFileAtomically(
      path, "name: mine\ntransform_string: round_weights(num_steps=16)\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Recipe recipe, LoadRecipe(path));
  EXPECT_EQ(recipe.name(), "mine");
}

}  // namespace
}  // namespace optfarm::optimize
