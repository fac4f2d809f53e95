#include "engine/optimize/samples/record_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "engine/formats/samples/wav.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/optimize/samples/labels.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::SourcePath;
using ::optfarm::testing::StatusIs;
using runtime::Shape;
using tensorflow::Example;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

ModelTensor Input(std::vector<int64_t> shape,
                  tensorflow::DataType dtype = tensorflow::DT_FLOAT) {
  ModelTensor input;
  input.name = {"x", 0};
  input.dtype = dtype;
  input.shape = std::move(shape);
  return input;
}

tensorflow::Feature& Feature(Example* example, const std::string& name) {
  return (*example->mutable_features()->mutable_feature())[name];
}

void SetBytes(Example* example, const std::string& name,
              const std::string& bytes) {
  Feature(example, name).mutable_bytes_list()->add_value(bytes);
}

void SetInt(Example* example, const std::string& name, int64_t value) {
  Feature(example, name).mutable_int64_list()->add_value(value);
}

// A file of `count` examples that `fill` makes.
std::string WriteRecords(const std::string& path, int count,
                         const std::function<void(int, Example*)>& fill) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    Example example;
    fill(i, &example);
    formats::AppendRecord(example.SerializeAsString(), &bytes);
  }
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return path;
}

std::string FloatsFile(int count) {
  return WriteRecords(JoinPath(FreshFolder(), "f.tfrecord"), count,
                      [](int i, Example* example) {
                        auto* list =
                            Feature(example, "values").mutable_float_list();
                        list->add_value(static_cast<float>(i));
                        list->add_value(0.5f);
                        SetInt(example, "label", i % 2);
                      });
}

absl::StatusOr<Dataset> Open(const std::string& file, const ModelTensor& input,
                             std::optional<double> mean = std::nullopt,
                             const std::string& feature = "") {
  LocalData local;
  local.AddInput("x", file, feature);
  local.SetMeanAndStd(mean, std::nullopt);
  return Dataset::Open(local, {}, {{input}});
}

TEST(RecordInputTest, FeedsALongListOfFloats) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               Open(FloatsFile(3), Input({-1, 2})));
  EXPECT_EQ(data.size(), 3);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(2));
  EXPECT_EQ(sample[0].shape(), Shape({1, 2}));
  EXPECT_THAT(sample[0].flat<float>(), ElementsAre(2, 0.5f));
  EXPECT_EQ(data.SampleName(2), "f.tfrecord#2");
  EXPECT_THAT(data.fed(), ElementsAre(HasSubstr("feature 'values'")));
}

TEST(RecordInputTest, FindsAndDecodesTheEncodedPicture) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      ListFolder(SourcePath("examples/digits/images/3")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string picture,
      ReadFile(JoinPath(SourcePath("examples/digits/images/3"), names[0])));
  const std::string file = WriteRecords(
      JoinPath(FreshFolder(), "p.tfrecord"), 2, [&](int i, Example* example) {
        SetBytes(example, "image/encoded", picture);
        SetBytes(example, "image/format", "png");
        SetInt(example, "image/class/label", i + 3);
      });
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               Open(file, Input({1, 8, 8, 1}), 100));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(0));
  EXPECT_EQ(sample[0].shape(), Shape({1, 8, 8, 1}));
  // The paper is white.
  EXPECT_EQ(sample[0].flat<float>()[0], 155);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const RecordLabels labels,
                               data.LabelsOfRecords());
  EXPECT_EQ(labels.feature, "image/class/label");
  EXPECT_THAT(labels.classes, ElementsAre(3, 4));
}

TEST(RecordInputTest, FeedsTheBytesOfArrays) {
  const std::string file = WriteRecords(
      JoinPath(FreshFolder(), "r.tfrecord"), 1, [](int, Example* example) {
        const float floats[] = {1.5f, -2, 3, 4};
        SetBytes(example, "floats",
                 std::string(reinterpret_cast<const char*>(floats), 16));
        SetBytes(example, "bytes", std::string("\x00\x40\x80\xff", 4));
      });
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset floats,
                               Open(file, Input({1, 2, 2}), {}, "floats"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto a, floats.Sample(0));
  EXPECT_THAT(a[0].flat<float>(), ElementsAre(1.5f, -2, 3, 4));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset bytes,
                               Open(file, Input({1, 2, 2}), 64, "bytes"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto b, bytes.Sample(0));
  EXPECT_THAT(b[0].flat<float>(), ElementsAre(-64, 0, 64, 191));
}

TEST(RecordInputTest, FeedsEncodedSounds) {
  const std::string file = WriteRecords(
      JoinPath(FreshFolder(), "s.tfrecord"), 1, [](int, Example* example) {
        SetBytes(example, "audio",
                 formats::SerializeWav({0.5f, -0.5f, 0.25f}, 16000));
      });
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data, Open(file, Input({3, 1})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(0));
  EXPECT_THAT(sample[0].flat<float>(), ElementsAre(0.5f, -0.5f, 0.25f));
}

TEST(RecordInputTest, ReadsAFolderOfFilesInOrder) {
  const std::string folder = FreshFolder();
  for (const char* name : {"b.tfrecord", "a.tfrecord"}) {
    WriteRecords(JoinPath(folder, name), 2, [&](int i, Example* example) {
      Feature(example, "v")
          .mutable_float_list()
          ->add_value(static_cast<float>(i + (name[0] == 'b' ? 10 : 0)));
    });
  }
  LocalData local;
  OPTFARM_ASSERT_OK(local.AddFolder(folder));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               Dataset::Open(local, {}, {{Input({1, 1})}}));
  ASSERT_EQ(data.size(), 4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(3));
  EXPECT_THAT(sample[0].flat<float>(), ElementsAre(11));
  EXPECT_EQ(data.SampleName(3), "b.tfrecord#1");
}

TEST(RecordInputTest, NamesTheFeaturesThereAre) {
  const std::string file = FloatsFile(1);
  EXPECT_THAT(Open(file, Input({-1, 2}), {}, "valeus").status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("'valeus'"), HasSubstr("'values'"))));
  EXPECT_THAT(Open(file, Input({-1, 7})).status(),
              StatusIs(kInvalid, HasSubstr("no feature fits input 'x'")));
}

TEST(RecordInputTest, AsksWhichOfSeveralFeatures) {
  const std::string file = WriteRecords(
      JoinPath(FreshFolder(), "t.tfrecord"), 1, [](int, Example* example) {
        Feature(example, "left").mutable_float_list()->add_value(1);
        Feature(example, "right").mutable_float_list()->add_value(2);
      });
  EXPECT_THAT(Open(file, Input({1, 1})).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("'left', 'right'"),
                                       HasSubstr("x=FILE.tfrecord:FEATURE"))));
}

TEST(RecordInputTest, OneRecordThatDoesNotFitIsThatSamplesError) {
  const std::string file = WriteRecords(
      JoinPath(FreshFolder(), "t.tfrecord"), 2, [](int i, Example* example) {
        auto* list = Feature(example, "v").mutable_float_list();
        for (int k = 0; k < 2 + i; ++k) list->add_value(1);
      });
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data, Open(file, Input({1, 2})));
  EXPECT_TRUE(data.Sample(0).ok());
  EXPECT_THAT(data.Sample(1).status(), StatusIs(kInvalid, HasSubstr("'v'")));
}

TEST(RecordInputTest, RefusesRecordsThatAreNoExamples) {
  std::string bytes;
  formats::AppendRecord("\xff\xff\xff", &bytes);
  const std::string path = JoinPath(FreshFolder(), "n.tfrecord");
  OPTFARM_ASSERT_OK(WriteFileAtomically(path, bytes));
  EXPECT_THAT(Open(path, Input({1, 2})).status(),
              StatusIs(kInvalid, HasSubstr("no tf.Example")));
}

TEST(RecordInputTest, LabelsComeFromAFeatureAndAreShifted) {
  const std::string file = FloatsFile(4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data, Open(file, Input({-1, 2})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels found,
                               LoadLabels(file, "label", data, 3, 1));
  EXPECT_THAT(found.classes, ElementsAre(1, 2, 1, 2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels guessed,
                               LabelsFromRecords(data, 2, 0));
  EXPECT_TRUE(guessed.guessed);
  EXPECT_THAT(guessed.classes, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(LoadLabels(file, "", data, 2, 1).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("offset of 1"),
                                       HasSubstr("2 classes"))));
}

}  // namespace
}  // namespace optfarm::optimize
