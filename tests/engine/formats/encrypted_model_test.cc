#include "engine/formats/tensorflow/encrypted_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/files.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

const std::string kHexKey(64, 'a');

AeadKey Key(char c = 'k') { return AeadKey(std::string(kAeadKeyBytes, c)); }

// Sets a variable of the environment for one test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(EncryptedModelTest, ComesBackInChunksOfAnySize) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(1000, 'w')}) {
    for (const uint32_t chunk : {1u, 7u, 1000u, 1001u, kEncryptionChunkBytes}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string sealed,
                                   EncryptModel(text, Key(), chunk));
      EXPECT_TRUE(IsEncryptedModel(sealed));
      EXPECT_EQ(*DecryptModel(sealed, Key(), "m"), text);
    }
  }
}

TEST(EncryptedModelTest, TheSameModelIsEncryptedDifferentlyEachTime) {
  EXPECT_NE(*EncryptModel("text", Key()), *EncryptModel("text", Key()));
}

TEST(EncryptedModelTest, EveryFlippedByteAndEveryCutIsAnError) {
  const std::string sealed = *EncryptModel("some weights here", Key(), 5);
  for (size_t at = 0; at < sealed.size(); ++at) {
    for (const char flip : {'\x01', '\x80'}) {
      std::string damaged = sealed;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_FALSE(DecryptModel(damaged, Key(), "m").ok()) << "byte " << at;
    }
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_FALSE(DecryptModel(sealed.substr(0, size), Key(), "m").ok());
  }
  EXPECT_FALSE(DecryptModel(sealed + "x", Key(), "m").ok());
}

TEST(EncryptedModelTest, ChunksCannotBeMovedOrLeftOut) {
  const std::string sealed = *EncryptModel("aaaaabbbbbccccc", Key(), 5);
  const size_t header = sealed.size() - 3 * (5 + kAeadTagBytes);
  const auto chunk = [&](int i) {
    return sealed.substr(header + i * (5 + kAeadTagBytes), 5 + kAeadTagBytes);
  };
  const std::string head = sealed.substr(0, header);
  ASSERT_THAT(DecryptModel(head + chunk(0) + chunk(1) + chunk(2), Key(), "m"),
              IsOk());
  EXPECT_THAT(DecryptModel(head + chunk(1) + chunk(0) + chunk(2), Key(), "m"),
              StatusIs(kDataLoss, HasSubstr("does not decrypt")));
  // A header that tells of two chunks only is another header.
  std::string shorter = head;
  shorter[12] = 10;
  EXPECT_THAT(DecryptModel(shorter + chunk(0) + chunk(1), Key(), "m"),
              StatusIs(kDataLoss, HasSubstr("does not decrypt")));
}

TEST(EncryptedModelTest, AnotherKeyDoesNotDecrypt) {
  const std::string sealed = *EncryptModel("text", Key());
  EXPECT_THAT(DecryptModel(sealed, Key('q'), "'m.enc'"),
              StatusIs(kDataLoss, AllOf(HasSubstr("'m.enc'"),
                                        HasSubstr("the key is another one"))));
}

TEST(EncryptedModelTest, RefusesHeadersThatClaimMoreThanThereIs) {
  std::string sealed = *EncryptModel("text", Key());
  sealed[18] = 0x7f;  // In the length.
  EXPECT_THAT(DecryptModel(sealed, Key(), "m"),
              StatusIs(kDataLoss, HasSubstr("header and its size disagree")));
  sealed[7] = '2';
  EXPECT_THAT(DecryptModel(sealed, Key(), "m"),
              StatusIs(kInvalid, HasSubstr("does not know")));
  EXPECT_THAT(DecryptModel("plain", Key(), "m"),
              StatusIs(kInvalid, HasSubstr("not an encrypted model")));
}

TEST(ModelKeyTest, ReadsHexAndRawKeys) {
  const std::string path = JoinPath(FreshFolder(), "key");
  ASSERT_THAT(WriteFileAtomically(path, kHexKey + "\n"), IsOk());
  const std::string sealed = *EncryptModel("text", *ReadModelKey(path));
  EXPECT_EQ(*DecryptModel(sealed, Key('\xaa'), "m"), "text");
  ASSERT_THAT(WriteFileAtomically(path, std::string(32, '\xaa')), IsOk());
  EXPECT_EQ(*DecryptModel(sealed, *ReadModelKey(path), "m"), "text");
}

TEST(ModelKeyTest, NeverShowsWhatItRefuses) {
  const std::string path = JoinPath(FreshFolder(), "key");
  ASSERT_THAT(WriteFileAtomically(path, "secret"), IsOk());
  EXPECT_THAT(ReadModelKey(path).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("64 hex digits"),
                                       Not(HasSubstr("secret")))));
}

TEST(ModelKeyTest, ComesFromTheEnvironment) {
  EXPECT_FALSE(ModelKeyFromEnvironment()->has_value());
  const std::string path = JoinPath(FreshFolder(), "key");
  ASSERT_THAT(WriteFileAtomically(path, kHexKey), IsOk());
  {
    const ScopedVariable file(kModelKeyFileVariable, path);
    EXPECT_TRUE(ModelKeyFromEnvironment()->has_value());
    const ScopedVariable both(kModelKeyVariable, kHexKey);
    EXPECT_THAT(ModelKeyFromEnvironment().status(),
                StatusIs(kInvalid, HasSubstr("both set")));
  }
  const ScopedVariable key(kModelKeyVariable, kHexKey);
  EXPECT_TRUE(ModelKeyFromEnvironment()->has_value());
}

tensorflow::GraphDef SmallGraph() {
  GraphBuilder b;
  b.Floats("w", {4}, {1, 2, 3, 4});
  return b.def();
}

TEST(EncryptedModelTest, GraphsLoadWithTheKeyOfTheEnvironment) {
  const std::string path = JoinPath(FreshFolder(), "m.enc");
  const std::string package = SerializeMemmapped(SmallGraph(), 1)->bytes;
  for (const std::string& plain :
       {*SerializeGraphDef(SmallGraph()),
        *SerializeGraphDef(SmallGraph(), GraphEncoding::kText), package}) {
    ASSERT_THAT(WriteFileAtomically(path, *EncryptModel(plain, Key('\xaa'))),
                IsOk());
    EXPECT_THAT(LoadGraphDef(path),
                StatusIs(kInvalid, AllOf(HasSubstr("is an encrypted model"),
                                         HasSubstr(kModelKeyFileVariable))));
    {
      const ScopedVariable key(kModelKeyVariable, kHexKey);
      OPTFARM_ASSERT_OK_AND_ASSIGN(const auto graph, LoadGraphDef(path));
      EXPECT_EQ(graph.node(0).op(), "Const");
    }
    const ScopedVariable wrong(kModelKeyVariable, std::string(64, 'b'));
    EXPECT_THAT(LoadGraphDef(path),
                StatusIs(kDataLoss, HasSubstr("does not decrypt")));
  }
}

TEST(EncryptedModelTest, APackageIsUsedWhereItWasDecrypted) {
  const std::string path = JoinPath(FreshFolder(), "m.enc");
  const std::string sealed =
      *EncryptModel(SerializeMemmapped(SmallGraph(), 1)->bytes, Key('\xaa'));
  ASSERT_THAT(WriteFileAtomically(path, sealed), IsOk());
  const ScopedVariable key(kModelKeyVariable, kHexKey);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const LoadedGraph loaded, LoadGraph(path));
  ASSERT_NE(loaded.package, nullptr);
  EXPECT_EQ(loaded.def.node(0).op(), "ImmutableConst");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const absl::string_view region,
      loaded.package->Find(
          loaded.def.node(0).attr().at("memory_region_name").s()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(region.data()) % kRegionAlignment, 0u);
}

TEST(EncryptedModelTest, ACallersKeyGoesBeforeTheEnvironments) {
  const std::string sealed =
      *EncryptModel(*SerializeGraphDef(SmallGraph()), Key());
  EXPECT_THAT(LoadGraphFromMemory(sealed, std::nullopt, "m").status(),
              StatusIs(kInvalid, HasSubstr("is an encrypted model")));
  const ScopedVariable other(kModelKeyVariable, kHexKey);
  EXPECT_THAT(LoadGraphFromMemory(sealed, Key(), "m").status(), IsOk());
  EXPECT_THAT(LoadGraphFromMemory(sealed, std::nullopt, "m").status(),
              StatusIs(kDataLoss, HasSubstr("does not decrypt")));
  EXPECT_THAT(
      LoadGraphFromMemory(*EncryptModel(sealed, Key()), Key(), "m").status(),
      StatusIs(kInvalid, HasSubstr("encrypted twice")));
}

TEST(EncryptedModelTest, DoesNotUnwrapWithoutEnd) {
  const ScopedVariable key(kModelKeyVariable, kHexKey);
  const std::string once =
      *EncryptModel(*SerializeGraphDef(SmallGraph()), Key('\xaa'));
  EXPECT_THAT(ParseGraphDef(*EncryptModel(once, Key('\xaa'))),
              StatusIs(kInvalid, HasSubstr("encrypted twice")));
}

}  // namespace
}  // namespace optfarm::formats
