// What files say for libraries on phones.

#include "engine/formats/tflite/metadata.h"

#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace optfarm::formats {
namespace {

using flatbuffers::GetRoot;
using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Table;
using flatbuffers::Vector;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tables = Vector<Offset<Table>>;

template <typename T>
const T* At(const Table* table, int field) {
  return table->GetPointer<const T*>(
      static_cast<flatbuffers::voffset_t>(4 + 2 * field));
}

TEST(TfliteMetadataTest, NamesNormalizationAndLabels) {
  TfliteMetadata metadata;
  metadata.mean = {127.5f};
  metadata.std = {127.5f};
  metadata.labels = {"cat", "dog"};
  const std::string bytes =
      PackTfliteMetadata(metadata, {"image", "other"}, {"scores"});
  EXPECT_EQ(bytes.substr(4, 4), "M001");
  const auto* model = GetRoot<Table>(bytes.data());
  const auto* subgraphs = At<Tables>(model, 3);
  ASSERT_EQ(subgraphs->size(), 1);
  const auto* inputs = At<Tables>(subgraphs->Get(0), 2);
  ASSERT_EQ(inputs->size(), 2);
  EXPECT_EQ(At<String>(inputs->Get(0), 0)->str(), "image");
  const auto* steps = At<Tables>(inputs->Get(0), 4);
  ASSERT_EQ(steps->size(), 1);
  EXPECT_EQ(steps->Get(0)->GetField<uint8_t>(4, 0), 1);
  const auto* options = At<Table>(steps->Get(0), 1);
  EXPECT_EQ(At<Vector<float>>(options, 0)->Get(0), 127.5f);
  EXPECT_EQ(At<Vector<float>>(options, 1)->Get(0), 127.5f);
  EXPECT_EQ(At<Tables>(inputs->Get(1), 4), nullptr);
  const auto* outputs = At<Tables>(subgraphs->Get(0), 3);
  const auto* files = At<Tables>(outputs->Get(0), 6);
  ASSERT_EQ(files->size(), 1);
  EXPECT_EQ(At<String>(files->Get(0), 0)->str(), kTfliteLabelsFile);
  EXPECT_EQ(files->Get(0)->GetField<uint8_t>(8, 0), 2);
}

TEST(TfliteMetadataTest, LabelsStandInAnArchiveBehindTheModel) {
  const std::string model(100, 'm');
  const std::string file = AppendTfliteLabels(model, {"cat", "dog"});
  EXPECT_EQ(file.substr(0, 100), model);
  EXPECT_EQ(file.substr(100, 4), std::string("PK\3\4", 4));
  EXPECT_THAT(file, HasSubstr("labels.txtcat\ndog\n"));
  // The directory says where the text is, from the start of the file.
  const size_t entry = file.find(std::string("PK\1\2", 4));
  ASSERT_NE(entry, std::string::npos);
  uint32_t place = 0;
  std::memcpy(&place, file.data() + entry + 42, sizeof(place));
  EXPECT_EQ(place, 100);
  // The checksum of "cat\ndog\n".
  uint32_t checksum = 0;
  std::memcpy(&checksum, file.data() + entry + 16, sizeof(checksum));
  EXPECT_EQ(checksum, 0xf1229021u);
}

TEST(TfliteMetadataTest, ReadsWhatItWrites) {
  TfliteMetadata metadata;
  metadata.mean = {1, 2, 3};
  metadata.std = {4, 5, 6};
  metadata.labels = {"cat", "dog's"};
  const std::string entry = PackTfliteMetadata(metadata, {"x"}, {"y"});
  const std::string model =
      AppendTfliteLabels(std::string(1000, 'm'), metadata.labels);
  const TfliteMetadata read = ParseTfliteMetadata(entry, model);
  EXPECT_EQ(read.mean, metadata.mean);
  EXPECT_EQ(read.std, metadata.std);
  EXPECT_EQ(read.labels, metadata.labels);
  EXPECT_TRUE(ParseTfliteMetadata(entry, "no archive").labels.empty());
}

TEST(TfliteMetadataTest, NothingThatIsCutOffOrChangedCrashesIt) {
  TfliteMetadata metadata;
  metadata.mean = {1};
  metadata.std = {2};
  metadata.labels = {"cat", "dog"};
  const std::string entry = PackTfliteMetadata(metadata, {"x"}, {"y"});
  const std::string model = AppendTfliteLabels("m", metadata.labels);
  for (size_t size = 0; size < entry.size(); ++size) {
    ParseTfliteMetadata(entry.substr(0, size), model);
  }
  for (size_t i = 0; i < entry.size(); ++i) {
    std::string changed = entry;
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      changed[i] = value;
      ParseTfliteMetadata(changed, model);
    }
  }
  for (size_t i = 0; i < model.size(); ++i) {
    std::string changed = model;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    ParseTfliteMetadata(entry, changed);
    ParseTfliteMetadata(entry, model.substr(0, i));
  }
}

TEST(TfliteMetadataTest, ReadsClassNames) {
  EXPECT_THAT(ParseClassNames("cat\ndog\r\n"), ElementsAre("cat", "dog"));
  EXPECT_THAT(ParseClassNames("0:cat\n1: a dog\n"),
              ElementsAre("cat", "a dog"));
  EXPECT_THAT(ParseClassNames("3\n1\n2\n"), IsEmpty());
  EXPECT_THAT(ParseClassNames(""), IsEmpty());
  EXPECT_THAT(ParseClassNames("cat\n\ndog"), IsEmpty());
  EXPECT_THAT(ParseClassNames(absl::string_view("\x93NUMPY\1\0", 8)),
              IsEmpty());
}

}  // namespace
}  // namespace optfarm::formats
