#include "engine/optimize/samples/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/optimize/report/compressed_size.h"
#include "engine/optimize/samples/array_input.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/optimize/samples/labels.h"
#include "engine/optimize/samples/sample_choice.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string Little(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return bytes;
}

template <typename T = float>
std::string Npy(const std::vector<T>& values) {
  return *formats::SerializeNpy(
      runtime::Tensor::FromValues<T>(
          runtime::Shape({static_cast<int64_t>(values.size())}), values)
          .ToProto());
}

struct Member {
  std::string name;
  std::string content;
};

// A ZIP file of stored members.
std::string Npz(const std::vector<Member>& members) {
  std::string file, directory;
  for (const Member& m : members) {
    const std::string sizes = Little(0, 4) + Little(m.content.size(), 4) +
                              Little(m.content.size(), 4) +
                              Little(m.name.size(), 2) + Little(0, 2);
    const std::string fixed =
        Little(20, 2) + Little(0, 2) + Little(0, 2) + Little(0, 4) + sizes;
    directory += "PK\x01\x02" + Little(20, 2) + fixed + Little(0, 2) +
                 Little(0, 2) + Little(0, 2) + Little(0, 4) +
                 Little(file.size(), 4) + m.name;
    file += "PK\x03\x04" + fixed + m.name + m.content;
  }
  return file + directory + "PK\x05\x06" + Little(0, 4) +
         Little(members.size(), 2) + Little(members.size(), 2) +
         Little(directory.size(), 4) + Little(file.size(), 4) + Little(0, 2);
}

TEST(ArrayFileTest, ReadsIdxInBigEndian) {
  const std::string bytes =
      Bytes({0, 0, 0x0B, 2, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2, 0xFF, 0xFE});
  EXPECT_TRUE(IsArray(bytes));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto proto, ParseArray(bytes, "x", ""));
  EXPECT_EQ(proto.dtype(), tensorflow::DT_INT16);
  EXPECT_EQ(proto.tensor_shape().dim(0).size(), 2);
  EXPECT_EQ(proto.tensor_shape().dim(1).size(), 1);
  EXPECT_EQ(proto.tensor_content(), Bytes({2, 1, 0xFE, 0xFF}));
}

TEST(ArrayFileTest, RefusesIdxThatClaimsOtherSizes) {
  // 2^32 - 1 rows of as many columns; a byte too few; no such type.
  for (const std::string& bytes :
       {Bytes({0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
               255, 255}),
        Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7}), Bytes({0, 0, 7, 1, 0, 0, 0, 0}),
        Bytes({0, 0, 8, 0}), Bytes({0, 0, 8})}) {
    EXPECT_FALSE(ParseArray(bytes, "x", "").ok());
  }
}

TEST(ArrayFileTest, SaysWhatIsWrongWithADamagedFile) {
  const std::string idx = Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7});
  EXPECT_TRUE(IsArray(idx));
  EXPECT_THAT(ParseArray(idx, "digits-idx1", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'digits-idx1' as IDX"),
                             HasSubstr("2 bytes of elements, and 1 are"))));
  EXPECT_FALSE(IsArray(Bytes({0, 0, 7, 1, 0, 0, 0, 0})));
  const std::string npz = Npz({{"x.npy", Npy({1, 2, 3})}});
  EXPECT_THAT(ParseArray(npz.substr(0, npz.size() / 2), "data.npz", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("data.npz"), HasSubstr("damaged"))));
}

TEST(ArrayFileTest, ReadsAnArrayOfAnNpz) {
  const std::string folder = FreshFolder();
  const std::string path = JoinPath(folder, "data.npz");
  OPTFARM_ASSERT_OK(WriteFileAtomically(
      path, Npz({{"x.npy", Npy({1, 2})}, {"y.npy", Npy({3, 4, 5})}})));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto y, LoadArray(path, "y"));
  EXPECT_EQ(y.tensor_shape().dim(0).size(), 3);
  EXPECT_THAT(LoadArray(path, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x'")));
  EXPECT_THAT(LoadArray(path, "z"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'y'")));
}

TEST(ArrayFileTest, ADamagedNpzIsAnError) {
  const std::string whole = Npz({{"x.npy", Npy({1, 2, 3})}});
  OPTFARM_ASSERT_OK(ParseArray(whole, "x", "").status());
  for (size_t size = 4; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseArray(whole.substr(0, size), "x", "").ok()) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    ParseArray(changed, "x", "").IgnoreError();
  }
}

TEST(ArrayFileTest, LabelsAreAnArrayOfAnNpz) {
  const std::string folder = FreshFolder();
  const std::string samples = JoinPath(folder, "x.npy");
  const std::string labels = JoinPath(folder, "data.npz");
  OPTFARM_ASSERT_OK(WriteFileAtomically(samples, Npy({5, 6, 7})));
  OPTFARM_ASSERT_OK(WriteFileAtomically(
      labels,
      Npz({{"x.npy", Npy({5, 6, 7})}, {"y.npy", Npy<int64_t>({2, 0, 1})}})));
  ModelTensor input;
  input.name = {"x", 0};
  input.dtype = tensorflow::DT_FLOAT;
  input.shape = {-1, 1};
  LocalData local;
  local.AddInput("x", samples);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Dataset data,
                               Dataset::Open(local, {}, {input}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Labels found,
                               LoadLabels(labels, "y", data, 3));
  EXPECT_THAT(found.classes, ElementsAre(2, 0, 1));
  EXPECT_THAT(LoadLabels(labels, "", data, 3).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("choose one as data.npz:NAME")));
}

TEST(ArrayFileTest, PicturesOfDigitsFitAFlatInput) {
  const std::string path = JoinPath(FreshFolder(), "digits");
  OPTFARM_ASSERT_OK(WriteFileAtomically(
      path, Bytes({0, 0,  8,   3,   0,   0,   0, 2, 0, 0, 0, 2, 0, 0, 0, 2,  //
                   0, 51, 102, 153, 204, 255, 0, 51})));
  ModelTensor input;
  input.name = {"x", 0};
  input.dtype = tensorflow::DT_FLOAT;
  input.shape = {-1, 4};
  Normalization normalization;
  normalization.std = {255};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ArrayInput array,
                               LoadArrayInput(path, {}, input, normalization));
  EXPECT_EQ(array.samples(), 2);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const runtime::Tensor sample, array.Sample(1));
  EXPECT_THAT(sample.shape().dims(), ElementsAre(1, 4));
  EXPECT_NEAR(sample.flat<float>()[0], 0.8f, 1e-6f);
  input.shape = {-1, 5};
  EXPECT_FALSE(LoadArrayInput(path, {}, input, normalization).ok());
}

TEST(CompressedSizeTest, RepetitionPacksAndNoiseDoesNot) {
  EXPECT_LT(*GzipSize(std::string(3 << 20, 'a')), 5000);
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525u + 1013904223u;
    noise.push_back(static_cast<char>(state >> 24));
  }
  EXPECT_GT(*GzipSize(noise), 99000);
  EXPECT_LT(*GzipSize(""), 40);
  EXPECT_LT(*ZstdSize(std::string(3 << 20, 'a')), 1000);
  EXPECT_GT(*ZstdSize(noise), 99000);
  EXPECT_LT(*ZstdSize(""), 40);
}

TEST(SampleChoiceTest, OthersAreThoseNotChosen) {
  EXPECT_THAT(OtherSamples({1, 3}, 5), ElementsAre(0, 2, 4));
  EXPECT_THAT(OtherSamples({}, 2), ElementsAre(0, 1));
  EXPECT_THAT(OtherSamples({0, 1}, 2), ElementsAre());
}

TEST(SampleChoiceTest, OneSeedOneChoice) {
  const std::vector<int64_t> all = {2, 3, 5, 7, 11, 13, 17, 19};
  const auto some = ChooseSome(all, 3, 4);
  EXPECT_THAT(some, SizeIs(3));
  EXPECT_EQ(some, ChooseSome(all, 3, 4));
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
  EXPECT_EQ(ChooseSome(all, 8, 4), all);
}

}  // namespace
}  // namespace optfarm::optimize
