// What of an ONNX file's properties has a meaning.

#include "engine/formats/onnx/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  EXPECT_THAT(Read("labels", R"(["cat", "dog"])").labels,
              ElementsAre("cat", "dog"));
  EXPECT_THAT(Read("labels", "cat\ndog\n").labels, ElementsAre("cat", "dog"));
  for (const char* other : {"", "{", "{0: 'cat'", "{1: 'cat'}",
                            "['cat'; 'dog']", "[1, 2]", "['a"}) {
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
}

TEST(OnnxPropertiesTest, WhatIsWrittenIsReadAgain) {
  graph::ModelNotes notes;
  notes.properties = {{"author", "somebody"}, {"names", "old"}};
  notes.labels = {"it's", "back\\slash"};
  notes.mean = {127.5f, 127.5f};
  notes.std = {127.5f, 127.5f};
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
  EXPECT_THAT(read.properties, testing::Contains(Pair("Image.NominalPixelRange",
                                                      "Normalized_1_1")));
}

}  // namespace
}  // namespace optfarm::formats
