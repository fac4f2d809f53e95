#include "engine/formats/tensorflow/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "engine/formats/tensorflow/checkpoint_v1.h"
#include "engine/formats/tensorflow/tensor_bundle.h"
#include "tests/engine/formats/checkpoint_writer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::BundleWriter;
using ::optfarm::testing::CheckpointV1Writer;
using ::optfarm::testing::FloatBytes;
using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::SliceOf;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::TestDataPath;
using tensorflow::DT_FLOAT;
using tensorflow::TensorProto;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

std::vector<float> Floats(const TensorProto& tensor) {
  std::vector<float> values(tensor.tensor_content().size() / sizeof(float));
  std::memcpy(values.data(), tensor.tensor_content().data(),
              values.size() * sizeof(float));
  return values;
}

absl::StatusOr<TensorProto> ReadTensor(const std::string& path,
                                       const std::string& name) {
  auto checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) return checkpoint.status();
  const SavedTensor* tensor = (*checkpoint)->Find(name);
  if (tensor == nullptr) return absl::NotFoundError(name);
  return (*checkpoint)->Read(*tensor);
}

// Every tensor, as text that two readings can be compared by.
absl::StatusOr<std::string> ReadEverything(
    absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint) {
  if (!checkpoint.ok()) return checkpoint.status();
  std::string all;
  for (const SavedTensor& tensor : (*checkpoint)->tensors()) {
    auto value = (*checkpoint)->Read(tensor);
    if (!value.ok()) return value.status();
    absl::StrAppend(&all, tensor.name, "\n", value->SerializeAsString(), "\n");
  }
  return all;
}

absl::StatusOr<std::string> ReadEverything(const std::string& path) {
  return ReadEverything(Checkpoint::Open(path));
}

std::string Prefix() { return JoinPath(FreshFolder(), "model.ckpt-7"); }

BundleWriter SmallBundle() {
  BundleWriter bundle(2);
  bundle.Add("bias", DT_FLOAT, {2}, FloatBytes({1, 2}), 1);
  bundle.Add("step", tensorflow::DT_INT64, {}, std::string(8, '\1'));
  bundle.AddStrings("names", {2}, {"one", ""});
  const auto top = SliceOf({{0, 1}, {0, -1}}),
             rest = SliceOf({{1, 2}, {0, -1}});
  bundle.AddPartitioned("w", DT_FLOAT, {3, 2}, {top, rest});
  bundle.AddPart("w", top, DT_FLOAT, {1, 2}, FloatBytes({1, 2}));
  bundle.AddPart("w", rest, DT_FLOAT, {2, 2}, FloatBytes({3, 4, 5, 6}), 1);
  return bundle;
}

TEST(TensorBundleTest, ReadsShardsPartsAndStrings) {
  const std::string prefix = Prefix();
  SmallBundle().Write(prefix);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(prefix));
  EXPECT_EQ(checkpoint->version(), 2);
  std::vector<std::string> names;
  for (const SavedTensor& t : checkpoint->tensors()) names.push_back(t.name);
  EXPECT_THAT(names, ElementsAre("bias", "names", "step", "w"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto bias,
                               checkpoint->Read(*checkpoint->Find("bias")));
  EXPECT_THAT(Floats(bias), ElementsAre(1, 2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto texts,
                               checkpoint->Read(*checkpoint->Find("names")));
  EXPECT_THAT(texts.string_val(), ElementsAre("one", ""));
  const SavedTensor& w = *checkpoint->Find("w");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto whole, checkpoint->Read(w));
  EXPECT_THAT(Floats(whole), ElementsAre(1, 2, 3, 4, 5, 6));
  // A part across two stored ones.
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const TensorProto column,
      checkpoint->Read(w, TensorSlice{{{0, 2}, {1, 1}}}));
  EXPECT_THAT(Floats(column), ElementsAre(2, 4));
  EXPECT_EQ(column.tensor_shape().dim(0).size(), 2);
  EXPECT_EQ(checkpoint->Find("nothing"), nullptr);
}

TEST(TensorBundleTest, OpensByAnyOfItsFiles) {
  const std::string prefix = Prefix();
  SmallBundle().Write(prefix, {.snappy = true, .block_size = 64});
  for (const char* ending :
       {"", ".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
    EXPECT_THAT(ReadTensor(prefix + ending, "bias"), IsOk()) << ending;
  }
}

TEST(TensorBundleTest, ReadsTheOtherByteOrder) {
  BundleWriter bundle(1, /*big_endian=*/true);
  bundle.Add("x", DT_FLOAT, {1}, std::string("\x3f\x80\0\0", 4));
  bundle.Add("h", tensorflow::DT_HALF, {2}, std::string("\x3c\0\x40\0", 4));
  bundle.Add("c", tensorflow::DT_COMPLEX64, {1},
             std::string("\x3f\x80\0\0\x40\0\0\0", 8));
  bundle.AddStrings("s", {2}, {"ab", "c"});
  const std::string prefix = Prefix();
  bundle.Write(prefix);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto x, ReadTensor(prefix, "x"));
  EXPECT_THAT(Floats(x), ElementsAre(1));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto h, ReadTensor(prefix, "h"));
  EXPECT_EQ(h.tensor_content(), std::string("\0\x3c\0\x40", 4));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto c, ReadTensor(prefix, "c"));
  EXPECT_THAT(Floats(c), ElementsAre(1, 2));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto s, ReadTensor(prefix, "s"));
  EXPECT_THAT(s.string_val(), ElementsAre("ab", "c"));
}

TEST(TensorBundleTest, EveryFlippedByteIsAnErrorOrDoesNotMatter) {
  const std::string prefix = Prefix();
  SmallBundle().Write(prefix);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string good, ReadEverything(prefix));
  std::map<std::string, std::string> files;
  for (const char* ending :
       {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
    files[prefix + ending] = *ReadFile(prefix + ending);
  }
  const FileOpener open = [&](const std::string& path)
      -> absl::StatusOr<std::unique_ptr<RandomAccessFile>> {
    if (!files.contains(path)) return absl::DataLossError(path);
    return RandomAccessFile::FromBytes(files[path], path);
  };
  for (auto& [path, bytes] : files) {
    for (char& byte : bytes) {
      byte = static_cast<char>(byte ^ 0x81);
      const auto read = ReadEverything(OpenTensorBundle(prefix, open));
      byte = static_cast<char>(byte ^ 0x81);
      if (read.ok()) {
        EXPECT_EQ(*read, good) << path << " byte " << &byte - bytes.data();
      } else {
        EXPECT_THAT(read, StatusIs(kDataLoss, HasSubstr(prefix)));
      }
    }
  }
}

TEST(TensorBundleTest, SaysWhichTensorIsDamagedWhere) {
  const std::string prefix = Prefix();
  BundleWriter bundle = SmallBundle();
  bundle.data[1][0] ^= 1;
  bundle.Write(prefix);
  EXPECT_THAT(ReadTensor(prefix, "bias"),
              StatusIs(kDataLoss, AllOf(HasSubstr("tensor 'bias'"),
                                        HasSubstr("bytes 0 to 8"),
                                        HasSubstr("data-00001-of-00002"),
                                        HasSubstr("checksum mismatch"))));
}

// Changes the entries and expects that opening says `says`.
template <typename Change>
void ExpectRefused(Change change, const char* says) {
  BundleWriter bundle = SmallBundle();
  change(&bundle);
  const std::string prefix = Prefix();
  bundle.Write(prefix);
  EXPECT_THAT(Checkpoint::Open(prefix), StatusIs(kDataLoss, HasSubstr(says)));
}

TEST(TensorBundleTest, RefusesEntriesThatDoNotFitTheFiles) {
  ExpectRefused([](auto* b) { b->entries["bias"].set_shard_id(2); },
                "data file 2 of 2");
  ExpectRefused([](auto* b) { b->entries["bias"].set_shard_id(-1); },
                "data file -1");
  ExpectRefused([](auto* b) { b->entries["bias"].set_offset(INT64_MAX); },
                "are not in");
  ExpectRefused([](auto* b) { b->entries["bias"].set_size(-8); }, "are not in");
  ExpectRefused([](auto* b) { b->entries["bias"].set_size(12); },
                "12 bytes are stored for 2 elements");
  ExpectRefused(
      [](auto* b) {
        b->entries["bias"].mutable_shape()->mutable_dim(0)->set_size(-1);
      },
      "tensor 'bias'");
  ExpectRefused(
      [](auto* b) {
        auto* shape = b->entries["bias"].mutable_shape();
        shape->mutable_dim(0)->set_size(int64_t{1} << 62);
        shape->add_dim()->set_size(8);
      },
      "tensor 'bias'");
  ExpectRefused(
      [](auto* b) {
        b->entries["names"].mutable_shape()->mutable_dim(0)->set_size(1000);
      },
      "are stored for 1000 elements");
  ExpectRefused([](auto* b) { b->entries["w"].mutable_slices()->RemoveLast(); },
                "its parts have 2 of 6 elements");
  ExpectRefused(
      [](auto* b) {
        *b->entries["w"].add_slices() = SliceOf({{0, 1}, {0, -1}});
      },
      "is there twice");
  ExpectRefused(
      [](auto* b) {
        *b->entries["w"].add_slices() = SliceOf({{3, 1}, {0, -1}});
      },
      "not in axis 0");
  ExpectRefused(
      [](auto* b) {
        *b->entries["w"].add_slices() = SliceOf({{0, 1}, {1, 1}});
      },
      "missing in the index");
  ExpectRefused([](auto* b) { b->header.set_num_shards(-1); }, "-1 data files");
}

TEST(TensorBundleTest, RefusesAWriterThatIsTooNew) {
  BundleWriter bundle = SmallBundle();
  bundle.header.mutable_version()->set_min_consumer(2);
  const std::string prefix = Prefix();
  bundle.Write(prefix);
  EXPECT_THAT(Checkpoint::Open(prefix),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs a reader of version 2")));
}

TEST(TensorBundleTest, NamesTheDataFileThatIsMissing) {
  const std::string prefix = Prefix();
  SmallBundle().Write(prefix);
  ASSERT_THAT(RemoveAll(prefix + ".data-00001-of-00002"), IsOk());
  EXPECT_THAT(Checkpoint::Open(prefix),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("data file 2 of 2"),
                             HasSubstr("data-00001-of-00002"))));
}

TEST(CheckpointTest, SaysWhatIsThereInstead) {
  const std::string folder = FreshFolder();
  const std::string prefix = JoinPath(folder, "model.ckpt-9");
  SmallBundle().Write(prefix);
  EXPECT_THAT(Checkpoint::Open(JoinPath(folder, "model.ckpt")),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(".index' (V2)"), HasSubstr(prefix))));
  EXPECT_THAT(Checkpoint::Open(folder),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("is a folder"), HasSubstr(prefix))));
}

TEST(CheckpointV1Test, ReadsEveryKindOfList) {
  CheckpointV1Writer file;
  file.AddFloats("f", {2}, {1.5, -2});
  TensorProto data;
  data.add_int_val(-3);
  const auto one = SliceOf({{0, -1}});
  file.AddPart("i8", tensorflow::DT_INT8, {1}, one, data);
  file.AddPart("i32", tensorflow::DT_INT32, {1}, one, data);
  data.Clear();
  data.add_bool_val(true);
  file.AddPart("b", tensorflow::DT_BOOL, {1}, one, data);
  data.Clear();
  data.add_string_val("text");
  file.AddPart("s", tensorflow::DT_STRING, {1}, one, data);
  const std::string path = Prefix();
  file.Write(path, {.snappy = true});
  EXPECT_THAT(Floats(*ReadTensor(path, "f")), ElementsAre(1.5, -2));
  EXPECT_EQ(ReadTensor(path, "i8")->tensor_content(), "\xfd");
  EXPECT_EQ(ReadTensor(path, "i32")->tensor_content(), "\xfd\xff\xff\xff");
  EXPECT_EQ(ReadTensor(path, "b")->tensor_content(), "\1");
  EXPECT_EQ(ReadTensor(path, "s")->string_val(0), "text");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(path));
  EXPECT_EQ(checkpoint->version(), 1);
}

// Rows 0 and 1 to 2 of a tensor [3,1], in two files.
std::string WriteV1Shards(const std::string& stem) {
  for (const int shard : {0, 1}) {
    CheckpointV1Writer file;
    TensorProto data;
    data.add_float_val(static_cast<float>(10 * shard));
    if (shard == 1) data.add_float_val(11);
    file.AddPart("w", DT_FLOAT, {3, 1}, SliceOf({{shard, 1 + shard}, {0, -1}}),
                 data);
    file.Write(absl::StrCat(stem, "-0000", shard, "-of-00002"));
  }
  return stem;
}

TEST(CheckpointV1Test, ReadsShardsUnderEveryNameOfThem) {
  const std::string stem = WriteV1Shards(Prefix());
  const std::string any(5, '?');
  for (const std::string& name :
       {stem, absl::StrCat(stem, "-", any, "-of-00002"),
        stem + "-00001-of-00002",
        stem + "-00000-of-00002," + stem + "-00001-of-00002"}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const TensorProto w, ReadTensor(name, "w"));
    EXPECT_THAT(Floats(w), ElementsAre(0, 10, 11)) << name;
  }
  ASSERT_THAT(RemoveAll(stem + "-00000-of-00002"), IsOk());
  EXPECT_THAT(ReadTensor(stem, "w"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("-00000-of")));
}

TEST(CheckpointV1Test, RefusesFilesWhoseListsAndValuesDisagree) {
  const std::string path = Prefix();
  {
    CheckpointV1Writer file;
    file.AddFloats("w", {3}, {1, 2});
    file.Write(path);
    EXPECT_THAT(ReadTensor(path, "w"),
                StatusIs(kDataLoss, HasSubstr("has 2 values")));
  }
  {
    CheckpointV1Writer file;
    file.AddFloats("w", {2}, {1, 2});
    file.parts.begin()->second = "\xff\xff";
    file.Write(path);
    EXPECT_THAT(ReadTensor(path, "w"),
                StatusIs(kDataLoss, HasSubstr("does not parse")));
    file.parts.clear();
    file.Write(path);
    EXPECT_THAT(ReadTensor(path, "w"),
                StatusIs(kDataLoss, HasSubstr("is missing")));
  }
  {
    CheckpointV1Writer file;
    file.AddFloats("w", {int64_t{1} << 30}, {1, 2});
    file.Write(path);
    EXPECT_THAT(ReadTensor(path, "w"),
                StatusIs(kDataLoss, HasSubstr("more than the files")));
  }
  {
    BundleWriter bundle;
    bundle.Write(path);
    EXPECT_THAT(Checkpoint::Open(path + ".data-00000-of-00001").status(),
                IsOk());
    ASSERT_THAT(RemoveAll(path), IsOk());
    std::string bytes = *ReadFile(path + ".index");
    ASSERT_THAT(WriteFileAtomically(path + ".table", bytes), IsOk());
    EXPECT_THAT(Checkpoint::Open(path + ".table"),
                StatusIs(kDataLoss, HasSubstr("no V1 checkpoint")));
  }
}

TEST(CheckpointV1Test, EveryFlippedByteIsAnErrorOrDoesNotMatter) {
  const std::string path = Prefix();
  CheckpointV1Writer file;
  file.AddFloats("weights", {2}, {1, 2});
  file.AddFloats("bias", {}, {3});
  file.Write(path);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string good, ReadEverything(path));
  const std::string bytes = *ReadFile(path);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    std::vector<std::unique_ptr<RandomAccessFile>> files;
    files.push_back(RandomAccessFile::FromBytes(damaged, path));
    const auto read = ReadEverything(OpenCheckpointV1(path, std::move(files)));
    if (read.ok()) {
      EXPECT_EQ(*read, good) << "byte " << at;
    } else {
      EXPECT_THAT(read, StatusIs(kDataLoss, HasSubstr(path)));
    }
  }
}

TEST(CheckpointTest, ReadsAllOfRealCheckpoints) {
  OPTFARM_REQUIRE_TEST_DATA();
  const struct {
    const char* path;
    int version;
  } kCheckpoints[] = {
      {"models/dotnet_cifar_model/model.ckpt", 2},
      {"models/dotnet_mnist_conv_model/variables/variables", 2},
      {"models/fakequant_mnist_edgetpu/checkpoints", 2},
      {"models/reuben_lstm_chain/model.checkpoint", 2},
      {"models/regression_savedmodel_rust/variables/variables", 2},
      {"models/mnist_v1_checkpoint/model.ckpt", 1},
      {"models/haskell_mnist_v1/MNISTWts.ckpt", 1},
  };
  for (const auto& test : kCheckpoints) {
    const std::string path = TestDataPath(test.path);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const auto checkpoint, Checkpoint::Open(path));
    EXPECT_EQ(checkpoint->version(), test.version) << path;
    EXPECT_FALSE(checkpoint->tensors().empty()) << path;
    EXPECT_THAT(ReadEverything(path), IsOk());
  }
}

}  // namespace
}  // namespace optfarm::formats
