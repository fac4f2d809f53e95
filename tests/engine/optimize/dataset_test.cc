#include "engine/optimize/samples/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/optimize/samples/labels.h"
#include "engine/optimize/samples/sample_reader.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::SourcePath;
using ::optfarm::testing::StatusIs;
using runtime::Shape;
using runtime::Tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

ModelTensor Input(const std::string& name, std::vector<int64_t> shape,
                  tensorflow::DataType dtype = tensorflow::DT_FLOAT) {
  ModelTensor input;
  input.name = {name, 0};
  input.dtype = dtype;
  input.shape = std::move(shape);
  return input;
}

template <typename T>
std::string WriteArray(const std::string& name, const Shape& shape,
                       const std::vector<T>& values) {
  const std::string path = JoinPath(FreshFolder(), name);
  EXPECT_TRUE(
      formats::SaveNpy(Tensor::FromValues<T>(shape, values).ToProto(), path)
          .ok());
  return path;
}

absl::StatusOr<Dataset> OpenArrays(
    std::vector<std::pair<std::string, std::string>> arrays,
    std::vector<ModelTensor> inputs) {
  LocalData local;
  for (const auto& [input, path] : arrays) local.AddInput(input, path);
  return Dataset::Open(local, {}, inputs);
}

LocalData Pictures(const std::string& folder) {
  LocalData local;
  EXPECT_TRUE(local.AddFolder(folder).ok());
  local.SetMeanAndStd(127.5, 127.5);
  return local;
}

// The example's pictures: folders 0..9 with 30 pictures each.
LocalData Digits() { return Pictures(SourcePath("examples/digits/images")); }

TEST(DatasetTest, SlicesArraysByTheirFirstAxis) {
  const std::string path =
      WriteArray<float>("x.npy", Shape({2, 1, 3}), {1, 2, 3, 4, 5, 6});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data, OpenArrays({{"x", path}}, {Input("x", {-1, 3})}));
  EXPECT_EQ(data.size(), 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(1));
  EXPECT_EQ(sample[0].shape(), Shape({1, 3}));
  EXPECT_THAT(sample[0].flat<float>(), ElementsAre(4, 5, 6));
}

TEST(DatasetTest, MakesABatchOfOneWhenTheBatchIsMissing) {
  const std::string path =
      WriteArray<float>("x.npy", Shape({2, 3}), {1, 2, 3, 4, 5, 6});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               OpenArrays({{"x", path}}, {Input("x", {1, 3})}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(1));
  EXPECT_EQ(sample[0].shape(), Shape({1, 3}));
}

TEST(DatasetTest, FeedsScalarsAndWholeInputsUnchanged) {
  const std::string x = WriteArray<float>("x.npy", Shape({2, 1, 1}), {1, 2});
  const std::string keep = WriteArray<float>("keep.npy", Shape(), {0.5f});
  const std::string style =
      WriteArray<float>("style.npy", Shape({3}), {7, 8, 9});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      OpenArrays(
          {{"x", x}, {"keep", keep}, {"style:0", style}},
          {Input("x", {-1, 1}), Input("keep", {}), Input("style", {3})}));
  EXPECT_EQ(data.size(), 2);
  for (const int64_t i : {0, 1}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(i));
    EXPECT_THAT(sample[1].flat<float>(), ElementsAre(0.5f));
    EXPECT_THAT(sample[2].flat<float>(), ElementsAre(7, 8, 9));
  }
}

TEST(DatasetTest, ScalesBytesForAFloatInput) {
  const std::string path =
      WriteArray<uint8_t>("x.npy", Shape({1, 1, 2}), {0, 255});
  LocalData local;
  local.AddInput("", path);
  local.SetMeanAndStd(127.5, 127.5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               Dataset::Open(local, {}, {Input("x", {1, 2})}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(0));
  EXPECT_THAT(sample[0].flat<float>(), ElementsAre(-1, 1));
  EXPECT_THAT(data.fed()[0], HasSubstr("127.5"));
  EXPECT_THAT(data.warnings(), IsEmpty());
}

TEST(DatasetTest, SaysThatAScaleIsNotForFloats) {
  LocalData local;
  local.AddInput("", WriteArray<float>("x.npy", Shape({1, 1, 2}), {0, 255}));
  local.SetMeanAndStd(127.5, std::nullopt);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               Dataset::Open(local, {}, {Input("x", {1, 2})}));
  EXPECT_THAT(data.warnings(), ElementsAre(HasSubstr("were not applied")));
}

TEST(DatasetTest, MistakesInArraysAreNamed) {
  const std::string x =
      WriteArray<float>("x.npy", Shape({2, 1, 3}), {1, 2, 3, 4, 5, 6});
  const std::string y = WriteArray<float>("y.npy", Shape({3, 1}), {1, 2, 3});
  EXPECT_THAT(
      OpenArrays({{"x", x}}, {Input("x", {-1, 4})}),
      StatusIs(kInvalid, AllOf(HasSubstr("x.npy"), HasSubstr("first axis"))));
  EXPECT_THAT(OpenArrays({{"z", x}}, {Input("x", {-1, 3})}),
              StatusIs(kInvalid, HasSubstr("none of the model's inputs")));
  EXPECT_THAT(OpenArrays({{"x", x}, {"x", x}}, {Input("x", {-1, 3})}),
              StatusIs(kInvalid, HasSubstr("twice")));
  EXPECT_THAT(OpenArrays({{"x", x}}, {Input("x", {-1, 3}), Input("y", {1})}),
              StatusIs(kInvalid, HasSubstr("Input 'y' has no data")));
  EXPECT_THAT(
      OpenArrays({{"x", x}, {"y", y}}, {Input("x", {-1, 3}), Input("y", {1})}),
      StatusIs(kInvalid, HasSubstr("3 samples, other data 2")));
  EXPECT_THAT(
      OpenArrays({{"x", x}}, {Input("x", {-1, 3}, tensorflow::DT_INT32)}),
      StatusIs(kInvalid, HasSubstr("astype")));
}

TEST(DatasetTest, ReadsPicturesForEveryLayout) {
  const struct {
    std::vector<int64_t> shape;
    Shape want;
  } kCases[] = {
      {{-1, 32, 32, 3}, Shape({1, 32, 32, 3})},
      {{1, 16, 20, 1}, Shape({1, 16, 20, 1})},
      {{12, 12, 3}, Shape({12, 12, 3})},
      {{-1, 784}, Shape({1, 784})},
      {{-1, 28, 28}, Shape({1, 28, 28})},
      {{-1, 3072}, Shape({1, 3072})},
      {{-1, 3, 16, 20}, Shape({1, 3, 16, 20})},
      {{1, 1, 16, 20}, Shape({1, 1, 16, 20})},
      {{3, 16, 20}, Shape({3, 16, 20})},
  };
  for (const auto& test : kCases) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const Dataset data,
        Dataset::Open(Digits(), {}, {Input("input", test.shape)}));
    EXPECT_EQ(data.size(), 300);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(299));
    EXPECT_EQ(sample[0].shape(), test.want);
    for (const float value : sample[0].flat<float>()) {
      ASSERT_TRUE(value >= -1 && value <= 1);
    }
  }
}

std::vector<runtime::Tensor> FirstPicture(
    const std::vector<int64_t>& shape, tensorflow::DataType dtype,
    const v1::Preprocessing& preprocessing = {}) {
  const absl::StatusOr<Dataset> data =
      Dataset::Open(Digits(), preprocessing, {Input("input", shape, dtype)});
  OPTFARM_CHECK(data.ok());
  return *data->Sample(0);
}

TEST(DatasetTest, ChannelsComeFirstWhereTheInputWantsThemSo) {
  v1::Preprocessing preprocessing;
  for (const double mean : {10, 20, 30}) preprocessing.add_mean(mean);
  preprocessing.set_channel_order(v1::Preprocessing::BGR);
  const auto last =
      FirstPicture({1, 8, 10, 3}, tensorflow::DT_FLOAT, preprocessing);
  const auto first =
      FirstPicture({1, 3, 8, 10}, tensorflow::DT_FLOAT, preprocessing);
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 80; ++i) {
      ASSERT_EQ(first[0].flat<float>()[k * 80 + i],
                last[0].flat<float>()[i * 3 + k]);
    }
  }
}

TEST(DatasetTest, SignedBytesAreGreyLevelsLess128) {
  const auto levels = FirstPicture({1, 8, 8, 1}, tensorflow::DT_UINT8);
  const auto values = FirstPicture({1, 8, 8, 1}, tensorflow::DT_INT8);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(values[0].flat<int8_t>()[i], levels[0].flat<uint8_t>()[i] - 128);
  }
}

TEST(DatasetTest, MistakesInFoldersAreNamed) {
  const std::vector<ModelTensor> unknown = {Input("x", {1, -1, -1, 3})};
  EXPECT_THAT(Dataset::Open(Digits(), {}, unknown),
              StatusIs(kInvalid, HasSubstr("--inputs=x:1,224,224,3")));
  EXPECT_THAT(Dataset::Open(Digits(), {}, {Input("x", {8, 32, 32, 3})}),
              StatusIs(kInvalid, HasSubstr("8 samples at once")));
  EXPECT_THAT(Dataset::Open(Digits(), {}, {Input("x", {1, 5, 7, 9, 11})}),
              StatusIs(kInvalid, HasSubstr("x=FILE.npy")));
  LocalData local;
  EXPECT_THAT(local.AddFolder(FreshFolder()),
              StatusIs(kInvalid, HasSubstr("has no .jpg")));
  EXPECT_THAT(local.AddFolder("/nowhere"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'/nowhere'")));
  EXPECT_TRUE(local.folders.empty());
}

TEST(DatasetTest, CorruptPicturesCostThemselvesUntilTheyAreMany) {
  const std::string folder = FreshFolder();
  const std::string from = SourcePath("examples/digits/images/3");
  const std::vector<std::string> names = *ListFolder(from);
  for (int i = 0; i < 8; ++i) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(JoinPath(folder, names[i]),
                                          *ReadFile(JoinPath(from, names[i]))));
  }
  OPTFARM_ASSERT_OK(WriteFileAtomically(JoinPath(folder, "a.png"), "no"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      Dataset::Open(Pictures(folder), {}, {Input("x", {1, 32, 32, 3})}));
  SampleReader reader(data);
  for (int64_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(reader.Read(i).has_value(), data.SampleName(i) != "a.png");
  }
  EXPECT_THAT(reader.CheckBad(), ::optfarm::testing::IsOk());
  ASSERT_THAT(reader.Bad(), SizeIs(1));
  EXPECT_EQ(reader.Bad()[0].node(), "a.png");

  for (const char* name : {"b.jpg", "c.jpg"}) {
    OPTFARM_ASSERT_OK(WriteFileAtomically(JoinPath(folder, name), "no"));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset worse,
      Dataset::Open(Pictures(folder), {}, {Input("x", {1, 32, 32, 3})}));
  SampleReader second(worse);
  for (int64_t i = 0; i < worse.size(); ++i) second.Read(i);
  EXPECT_THAT(second.CheckBad(),
              StatusIs(kInvalid, AllOf(HasSubstr("3 of 11 samples"),
                                       HasSubstr("a.png"))));
}

// A row of as many values as the input takes may be one constant, or samples.
TEST(DatasetTest, ALayoutDecidesWhereShapesDoNot) {
  const std::string path = WriteArray<float>("x.npy", Shape({3}), {7, 8, 9});
  const auto open = [&](v1::DataSource::Layout layout,
                        const ModelTensor& input) {
    LocalData local;
    local.AddInput("x", path);
    local.dataset.mutable_sources(0)->set_layout(layout);
    return Dataset::Open(local, {}, {input});
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset by_shape,
      open(v1::DataSource::LAYOUT_UNSPECIFIED, Input("x", {3})));
  EXPECT_EQ((*by_shape.Sample(0))[0].shape(), Shape({3}));
  ModelTensor unknown = Input("x", {});
  unknown.shape.reset();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset constant,
                               open(v1::DataSource::CONSTANT, unknown));
  EXPECT_EQ(constant.size(), 1);
  EXPECT_THAT((*constant.Sample(0))[0].flat<float>(), ElementsAre(7, 8, 9));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset samples,
      open(v1::DataSource::SAMPLE_AXIS_FIRST, Input("x", {1})));
  EXPECT_EQ(samples.size(), 3);
  EXPECT_THAT((*samples.Sample(2))[0].flat<float>(), ElementsAre(9));
  EXPECT_THAT(open(v1::DataSource::SAMPLE_AXIS_FIRST, Input("x", {3})),
              StatusIs(kInvalid, HasSubstr("first axis")));
  EXPECT_THAT(open(v1::DataSource::CONSTANT, Input("x", {4})),
              StatusIs(kInvalid, HasSubstr("layout CONSTANT")));
}

TEST(DatasetTest, EachSourceHasItsOwnScale) {
  LocalData local;
  local.AddInput("x", WriteArray<uint8_t>("x.npy", Shape({1, 1, 2}), {0, 255}));
  local.AddInput("y", WriteArray<uint8_t>("y.npy", Shape({1, 1, 2}), {0, 255}));
  local.dataset.mutable_sources(0)->set_std(255);
  // Given, and no sentinel.
  local.dataset.mutable_sources(1)->set_mean(0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      Dataset::Open(local, {}, {Input("x", {1, 2}), Input("y", {1, 2})}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto sample, data.Sample(0));
  EXPECT_THAT(sample[0].flat<float>(), ElementsAre(0, 1));
  EXPECT_THAT(sample[1].flat<float>(), ElementsAre(0, 255));
  local.dataset.mutable_sources(1)->set_std(0);
  EXPECT_THAT(
      Dataset::Open(local, {}, {Input("x", {1, 2}), Input("y", {1, 2})}),
      StatusIs(kInvalid, HasSubstr("a std other than 0")));
}

// A deviation of 0 and a mean of 0 used to stand for "not given".
TEST(DatasetTest, WarnsOnlyWhenNoScaleIsGiven) {
  const std::vector<ModelTensor> input = {Input("x", {1, 8, 8, 3})};
  LocalData local;
  OPTFARM_ASSERT_OK(local.AddFolder(SourcePath("examples/digits/images/3")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset silent,
                               Dataset::Open(local, {}, input));
  EXPECT_THAT(silent.warnings(), ElementsAre(HasSubstr("as 0..255")));
  local.SetMeanAndStd(0, std::nullopt);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset given,
                               Dataset::Open(local, {}, input));
  EXPECT_THAT(given.warnings(), IsEmpty());
  v1::Preprocessing preprocessing;
  preprocessing.add_std(2);
  local.SetMeanAndStd(std::nullopt, 4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset both,
                               Dataset::Open(local, preprocessing, input));
  EXPECT_THAT(both.fed(), ElementsAre(HasSubstr("(value - 0) / 2")));
}

TEST(DatasetTest, SamplesAreOrderedFolderByFolder) {
  const std::string from =
      JoinPath(SourcePath("examples/digits/images/3"),
               ListFolder(SourcePath("examples/digits/images/3"))->at(0));
  const std::string folder = FreshFolder();
  for (const char* path : {"a-b/1.png", "a/2.png", "a.png", ".x/3.png"}) {
    const std::string file = JoinPath(folder, path);
    OPTFARM_ASSERT_OK(MakeFolders(file.substr(0, file.rfind('/'))));
    OPTFARM_ASSERT_OK(WriteFileAtomically(file, *ReadFile(from)));
  }
  LocalData local = Pictures(folder);
  // As a request may list them.
  std::reverse(local.dataset.mutable_sources(0)->mutable_files()->begin(),
               local.dataset.mutable_sources(0)->mutable_files()->end());
  local.dataset.mutable_sources(0)->add_files()->set_path("notes.txt");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data, Dataset::Open(local, {}, {Input("x", {1, 8, 8, 3})}));
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.SampleName(0), "a/2.png");
  EXPECT_EQ(data.SampleName(1), "a-b/1.png");
  EXPECT_EQ(data.SampleName(2), "a.png");
}

TEST(DatasetTest, SamplesAreOfOneKind) {
  LocalData local = Digits();
  local.dataset.mutable_sources(0)->add_files()->set_path("x.wav");
  EXPECT_THAT(Dataset::Open(local, {}, {Input("x", {1, 8, 8, 3})}),
              StatusIs(kInvalid, HasSubstr("1 sounds with 300 pictures")));
  local.dataset.mutable_sources(0)->clear_files();
  local.dataset.mutable_sources(0)->add_files()->set_path("notes.txt");
  EXPECT_THAT(Dataset::Open(local, {}, {Input("x", {1, 8, 8, 3})}),
              StatusIs(kInvalid, HasSubstr("None of the 1 sample files")));
}

TEST(DatasetTest, ChoosesTheSameSamplesForTheSameSeed) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      Dataset::Open(Digits(), {}, {Input("x", {1, 32, 32, 3})}));
  EXPECT_THAT(data.Choose(10, 1), SizeIs(10));
  EXPECT_EQ(data.Choose(10, 1), data.Choose(10, 1));
  EXPECT_NE(data.Choose(10, 1), data.Choose(10, 2));
  EXPECT_THAT(data.Choose(0, 1), SizeIs(300));
}

TEST(DatasetTest, MakesUpTheSameValuesForTheSameSeed) {
  const std::vector<ModelTensor> inputs = {
      Input("x", {-1, 4}), Input("i", {2}, tensorflow::DT_INT32)};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset a,
                               Dataset::MakeRandom(inputs, 3, 5));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset b,
                               Dataset::MakeRandom(inputs, 3, 5));
  EXPECT_TRUE(a.is_random());
  EXPECT_EQ((*a.Sample(2))[0].DebugString(4), (*b.Sample(2))[0].DebugString(4));
  EXPECT_NE((*a.Sample(1))[0].DebugString(4), (*a.Sample(2))[0].DebugString(4));
  EXPECT_THAT(
      Dataset::MakeRandom({Input("s", {}, tensorflow::DT_STRING)}, 1, 1),
      StatusIs(kInvalid, HasSubstr("No values can be made up")));
}

class LabelsTest : public ::testing::Test {
 protected:
  LabelsTest()
      : data_(*Dataset::Open(Digits(), {}, {Input("x", {1, 32, 32, 3})})) {}

  absl::StatusOr<Labels> Load(const std::string& text, int64_t classes,
                              int64_t offset = 0) {
    const std::string path = JoinPath(FreshFolder(), "labels.txt");
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return LoadLabels(path, "", data_, classes, offset);
  }

  Dataset data_;
};

TEST_F(LabelsTest, MatchesClassNamesWithFolders) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels labels,
                               Load("9\n8\n7\n6\n5\n4\n3\n2\n1\n0\n", 10));
  EXPECT_EQ(labels.classes.front(), 9);
  EXPECT_EQ(labels.classes.back(), 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels numbered,
                               Load("0:background\n1:3\n2:_unknown_\n", 3));
  EXPECT_EQ(numbered.classes[0], 2);
  EXPECT_EQ(numbered.classes[100], 1);
  EXPECT_THAT(numbered.names, ElementsAre("background", "3", "_unknown_"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels shifted,
                               Load("3\n_unknown_\n", 3, /*offset=*/1));
  EXPECT_EQ(shifted.classes[100], 1);
  EXPECT_EQ(shifted.first_named, 1);
}

TEST_F(LabelsTest, ReadsNumbersInOrderAndByPath) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += "12\n";
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels in_order, Load(lines, 13));
  EXPECT_EQ(in_order.classes[7], 12);
  const std::string path = data_.SampleName(5);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels by_path, Load(path + " 4\n", 10));
  EXPECT_EQ(by_path.classes[5], 4);
  EXPECT_EQ(by_path.classes[6], -1);
  EXPECT_THAT(by_path.names, IsEmpty());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Labels csv,
      Load("file,index9,index10,name\n" + path + ",1,2,\"a, b\"\n", 10));
  EXPECT_EQ(csv.classes[5], 2);
}

TEST_F(LabelsTest, MistakesAreNamed) {
  EXPECT_THAT(Load("cat\ndog\n", 10),
              StatusIs(kInvalid, HasSubstr("label none of the 300 samples")));
  EXPECT_THAT(Load(data_.SampleName(5) + " 10\n", 10),
              StatusIs(kInvalid, HasSubstr("class 10 of")));
  EXPECT_THAT(Load(data_.SampleName(5) + " cat\n", 10),
              StatusIs(kInvalid, HasSubstr("line 1")));
}

TEST_F(LabelsTest, GuessesFromFoldersOnlyWhenTheyFit) {
  const Labels labels = GuessLabels(data_, 10);
  ASSERT_THAT(labels.classes, SizeIs(300));
  EXPECT_TRUE(labels.guessed);
  EXPECT_THAT(labels.names, IsEmpty());
  EXPECT_EQ(labels.classes[299], 9);
  EXPECT_THAT(GuessLabels(data_, 5).classes, IsEmpty());
  EXPECT_EQ(GuessLabels(data_, 11, /*offset=*/1).classes[299], 10);
  EXPECT_THAT(GuessLabels(data_, 10, /*offset=*/1).classes, IsEmpty());
}

TEST(GuessedLabelsTest, AreNamedAfterFoldersThatAreNoNumbers) {
  const std::string folder = FreshFolder();
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> pictures,
      ListFolder(SourcePath("examples/digits/images/3")));
  for (const char* animal : {"dog", "cat"}) {
    OPTFARM_ASSERT_OK(MakeFolders(JoinPath(folder, animal)));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::string picture,
        ReadFile(SourcePath("examples/digits/images/3/" + pictures[0])));
    OPTFARM_ASSERT_OK(WriteFileAtomically(
        absl::StrCat(folder, "/", animal, "/1.png"), picture));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      Dataset::Open(Pictures(folder), {}, {Input("x", {1, 32, 32, 3})}));
  EXPECT_THAT(GuessLabels(data, 2).names, ElementsAre("cat", "dog"));
  EXPECT_THAT(GuessLabels(data, 3).names, IsEmpty());
}

}  // namespace
}  // namespace optfarm::optimize
