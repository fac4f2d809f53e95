// What of an ONNX file's properties has a meaning.

#include "engine/formats/onnx/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace optfarm::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

graph::ModelNotes Read(const std::string& key, const std::string& value) {
  onnx::ModelProto model;
  auto* entry = model.add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
  return ReadOnnxProperties(model);
}

TEST(OnnxPropertiesTest, NamesOfClasses) {
  EXPECT_THAT(Read("names", "{0: 'cat', 1: \"dog's\"}").labels,
              ElementsAre("cat", "dog's"));
  EXPECT_THAT(Read("names", R"({"0": "cat", "1": "dog"})").labels,
              ElementsAre("cat", "dog"));
  EXPECT_THAT(Read("names", R"(["caf\u00e9", "a\/b", "tab\t", "\\/"])").labels,
              ElementsAre("caf\xc3\xa9", "a/b", "tab\t", "\\/"));
  EXPECT_THAT(Read("labels", R"(["cat", "dog"])").labels,
              ElementsAre("cat", "dog"));
  EXPECT_THAT(Read("labels", "cat\ndog\n").labels, ElementsAre("cat", "dog"));
  for (const char* other : {"", "{", "{0: 'cat'", "{1: 'cat'}",
                            "['cat'; 'dog']", "[1, 2]", "['a", "['\\q']"}) {
    EXPECT_THAT(Read("names", other).labels, IsEmpty()) << other;
  }
}

TEST(OnnxPropertiesTest, ScaleOfPictures) {
  EXPECT_THAT(Read("Image.NominalPixelRange", "Normalized_1_1").mean,
              ElementsAre(127.5f));
  EXPECT_THAT(Read("Image.NominalPixelRange", "Normalized_0_1").std,
              ElementsAre(255));
  EXPECT_THAT(Read("Image.NominalPixelRange", "NominalRange_16_235").mean,
              IsEmpty());
  onnx::ModelProto model;
  for (const auto& [key, value] :
       {std::pair("optfarm.input_mean", "1,2"), {"optfarm.input_std", "1,0"}}) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  EXPECT_THAT(ReadOnnxProperties(model).mean, IsEmpty());
}

TEST(OnnxPropertiesTest, WhatIsWrittenIsReadAgain) {
  graph::ModelNotes notes;
  notes.properties = {{"author", "somebody"},
                      {"names", "old"},
                      {"labels", "older"},
                      {"Image.NominalPixelRange", "Normalized_0_1"}};
  notes.labels = {"it's", "back\\slash"};
  notes.mean = {123.675003f, 127.5f};
  notes.std = {58.3949966f, 127.5f};
  onnx::ModelProto model;
  for (const auto& [key, value] : OnnxPropertiesOf(notes)) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  const graph::ModelNotes read = ReadOnnxProperties(model);
  EXPECT_EQ(read.labels, notes.labels);
  EXPECT_EQ(read.mean, notes.mean);
  EXPECT_EQ(read.std, notes.std);
  EXPECT_THAT(read.properties, testing::Contains(Pair("author", "somebody")));
  // What the file said of another scale and of other names is gone.
  for (const auto& [key, value] : read.properties) {
    EXPECT_NE(key, "Image.NominalPixelRange");
    EXPECT_NE(key, "labels");
  }
}

TEST(OnnxPropertiesTest, KnownScalesAreSaidInOnnxsWords) {
  graph::ModelNotes notes;
  notes.mean = notes.std = {127.5f, 127.5f};
  EXPECT_THAT(
      OnnxPropertiesOf(notes),
      testing::Contains(Pair("Image.NominalPixelRange", "Normalized_1_1")));
}

}  // namespace
}  // namespace optfarm::formats
