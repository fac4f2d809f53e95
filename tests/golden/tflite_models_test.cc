// Real TensorFlow Lite models against the interpreter's answers, and files that
// must be refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/formats/tflite/reader.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/verify.h"
#include "tests/golden/interchange_case.h"
#include "tests/golden/interchange_run.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<graph::Graph> Load(const std::string& path) {
  const auto bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  auto def = formats::ReadTflite(*bytes, absl::StrCat("'", path, "'"));
  if (!def.ok()) return def.status();
  return graph::Graph::FromDef(*std::move(def));
}

// How a model agrees with the interpreter. UNITS: percent.
struct Agreement {
  const char* model = nullptr;
  // Of its quantized elements: those that are exact, those within a step.
  double exact = 100, near = 100;
  // Where not 0: the model does not agree, and its floats are this far from
  // the interpreter's, of the largest one.
  double apart = 0;
};

// All others are exact.
constexpr Agreement kAgreements[] = {
    // The interpreter rounds twice in depthwise layers of an open batch, and
    // its two builds are apart.
    {.model = "stm_fdmobilenet", .exact = 40},
    // The interpreter quantizes activations in each run; so does each of its
    // builds in its own way, and they are 27 % apart.
    {.model = "yolox_nano_dyn", .apart = 6.5},
};

Agreement AgreementOf(const std::string& model) {
  for (const Agreement& entry : kAgreements) {
    if (model == entry.model) return entry;
  }
  return {};
}

double Percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// What a model loses and what it gains both change its entry.
void ExpectAgreement(const Agreement& expected, const std::string& model,
                     const StepCount& steps) {
  // UNITS: percent. Float layers of other instruction sets round otherwise.
  constexpr double kSlack = 0.3;
  if (steps.elements == 0) return;
  const double exact = Percent(steps.exact, steps.elements);
  const double near = Percent(steps.near, steps.elements);
  std::cout << model << ": " << steps.elements << " elements, exact " << exact
            << " %, within a step " << near << " %\n";
  EXPECT_NEAR(exact, expected.exact, kSlack);
  EXPECT_NEAR(near, expected.near, kSlack);
}

class TfliteModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TfliteModelTest, AnswersAsTheInterpreter) {
  OPTFARM_REQUIRE_TEST_DATA();
  const InterchangeCase golden("tflite/" + GetParam());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               Load(golden.ModelPath()));
  OPTFARM_ASSERT_OK(graph::Verify(graph));
  EXPECT_EQ(graph::ReadModelInterface(graph).format, "tflite");
  const Agreement expected = AgreementOf(GetParam());
  StepCount steps;
  double apart = 0;
  for (int sample = 0; sample < golden.samples(); ++sample) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<runtime::Tensor> answers,
                                 RunSample(graph, golden, sample));
    for (int i = 0; i < golden.outputs(sample); ++i) {
      const runtime::Tensor& answer = answers[static_cast<size_t>(i)];
      steps += golden.Steps(sample, i, answer);
      apart = std::max(apart, golden.RelativeDifference(sample, i, answer));
      if (expected.apart > 0) continue;
      EXPECT_EQ(golden.Disagreement(sample, i, answer), "")
          << "sample " << sample << ", output " << golden.OutputName(sample, i);
    }
  }
  ExpectAgreement(expected, GetParam(), steps);
  // UNITS: percent.
  constexpr double kSlack = 1;
  if (expected.apart > 0) {
    EXPECT_NEAR(100 * apart, expected.apart, kSlack);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TfliteModelTest,
                         ::testing::ValuesIn(InterchangeModels("tflite")),
                         ModelTestName);

class RefusedTfliteTest : public ::testing::TestWithParam<RefusedFile> {};

TEST_P(RefusedTfliteTest, SaysWhy) {
  OPTFARM_REQUIRE_TEST_DATA();
  const auto loaded =
      Load(TestDataPath(absl::StrCat("interchange/refuse/", GetParam().file)));
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedTfliteTest,
    ::testing::Values(
        RefusedFile{"audio_preprocessor_int8.tflite",
                    "custom operator SignalWindow (1)"},
        RefusedFile{"hair_seg.tflite", "custom operator MaxUnpooling2D (3)"},
        RefusedFile{"mnv3_seg_int8.tflite", "has zero point"},
        RefusedFile{"person_detect.tflite", "scales for dimension 3"},
        RefusedFile{"litert_fc_blockwise.tflite",
                    "quantized by BlockwiseQuantization"}),
    RefusedTestName);

// Old builds of the interpreter do not know the operator; new ones do.
TEST(MediaPipeTfliteTest, TransposedConvolutionsWithABiasAreRead) {
  OPTFARM_REQUIRE_TEST_DATA();
  for (const char* file :
       {"segm_full.tflite", "mp_selfie.tflite", "mp_selfie_landscape.tflite"}) {
    const auto loaded =
        Load(TestDataPath(absl::StrCat("interchange/refuse/", file)));
    EXPECT_TRUE(loaded.ok()) << file << ": " << loaded.status();
  }
}

}  // namespace
}  // namespace optfarm::testing
