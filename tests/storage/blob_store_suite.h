// What every BlobStore does, whatever it keeps its blobs in: whole, right bytes
// or none, whatever the uploads and the disk do. A program that includes this
// instantiates BlobStoreSuite with its engines.

#ifndef OPTFARM_TESTS_STORAGE_BLOB_STORE_SUITE_H_
#define OPTFARM_TESTS_STORAGE_BLOB_STORE_SUITE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "storage/blob_store.h"
#include "tests/storage/blob_store_engine.h"
#include "tests/support/status_matchers.h"

namespace optfarm::storage {

class BlobStoreSuite : public ::testing::TestWithParam<NamedEngine> {
 protected:
  void SetUp() override {
    auto engine = GetParam().make();
    if (absl::IsFailedPrecondition(engine.status())) {
      GTEST_SKIP() << engine.status().message();
    }
    OPTFARM_ASSERT_OK(engine.status());
    engine_ = *std::move(engine);
    Reopen();
  }
  void Reopen() {
    store_.reset();
    OPTFARM_ASSERT_OK_AND_ASSIGN(store_, engine_->Open(limits_));
  }
  bool Has(absl::string_view bytes) {
    return store_->Contains(IdOf(bytes), kNow).value_or(false);
  }
  std::string ReadBack(absl::string_view bytes) {
    const auto reader = store_->OpenBlob(IdOf(bytes).sha256);
    if (!reader.ok()) return reader.status().ToString();
    return (*reader)->Read(0, (*reader)->size_bytes()).value_or("unreadable");
  }

  BlobStoreLimits limits_;
  std::unique_ptr<BlobStoreEngine> engine_;
  std::unique_ptr<BlobStore> store_;
};

TEST_P(BlobStoreSuite, KeepsBlobsAcrossRestart) {
  ASSERT_THAT(PutBlob(*store_, "hello", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "", kNow), IsOk());
  Reopen();
  EXPECT_TRUE(Has("hello"));
  EXPECT_EQ(ReadBack("hello"), "hello");
  EXPECT_TRUE(Has(""));
  EXPECT_EQ(store_->Usage().blob_bytes, 5);
}

TEST_P(BlobStoreSuite, UploadResumesAfterBreakAndRestart) {
  const BlobId id = IdOf("0123456789");
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
    ASSERT_THAT(upload->Append(0, "0123"), IsOk());
  }
  Reopen();
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  EXPECT_EQ(upload->staged_bytes(), 4);
  // Two bytes come again; they are skipped.
  ASSERT_THAT(upload->Append(2, "23456789"), IsOk());
  ASSERT_THAT(upload->Finish(kNow), IsOk());
  EXPECT_EQ(ReadBack("0123456789"), "0123456789");
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 10);
  EXPECT_EQ(store_->Usage().staged_bytes, 0);
}

TEST_P(BlobStoreSuite, UploadWithWrongDigestIsRefusedAndForgotten) {
  const BlobId id = IdOf("right");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  ASSERT_THAT(upload->Append(0, "wrong"), IsOk());
  EXPECT_THAT(upload->Finish(kNow),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(id.sha256)));
  EXPECT_FALSE(Has("right"));
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 0);
  upload.reset();
  EXPECT_THAT(PutBlob(*store_, "right", kNow), IsOk());
}

TEST_P(BlobStoreSuite, RefusesGapsAndTooManyBytes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(IdOf("12345")));
  EXPECT_THAT(upload->Append(1, "2"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(upload->Append(0, "123456"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(upload->Append(-1, "1"),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(upload->Finish(kNow),
              StatusIs(absl::StatusCode::kFailedPrecondition, _));
}

TEST_P(BlobStoreSuite, NewerUploadTakesOver) {
  const BlobId id = IdOf("abcdef");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto older, store_->OpenUpload(id));
  ASSERT_THAT(older->Append(0, "abc"), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto newer, store_->OpenUpload(id));
  EXPECT_EQ(newer->staged_bytes(), 3);
  EXPECT_THAT(older->Append(3, "def"), StatusIs(absl::StatusCode::kAborted, _));
  older.reset();
  ASSERT_THAT(newer->Append(3, "def"), IsOk());
  EXPECT_THAT(newer->Finish(kNow), IsOk());
  EXPECT_TRUE(Has("abcdef"));
}

TEST_P(BlobStoreSuite, FullDiskHarmsNothingElse) {
  ASSERT_THAT(PutBlob(*store_, "before", kNow), IsOk());
  for (const int64_t room : {0, 1, 4, 9}) {
    engine_->files.room = room;
    EXPECT_THAT(
        PutBlob(*store_, "0123456789", kNow),
        StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("free space")))
        << room;
    EXPECT_EQ(store_->Usage().staged_bytes, 0) << room;
  }
  engine_->files.room = 100;
  EXPECT_EQ(ReadBack("before"), "before");
  EXPECT_THAT(PutBlob(*store_, "0123456789", kNow), IsOk());
}

TEST_P(BlobStoreSuite, SizeLimitsHoldBeforeAnythingIsWritten) {
  limits_.max_blob_bytes = 8;
  limits_.max_total_bytes = 10;
  Reopen();
  EXPECT_THAT(store_->OpenUpload(IdOf("123456789")),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("9 bytes")));
  ASSERT_THAT(PutBlob(*store_, "1234567", kNow), IsOk());
  EXPECT_THAT(PutBlob(*store_, "abcd", kNow),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("--max_store_bytes")));
  EXPECT_THAT(PutBlob(*store_, "abc", kNow), IsOk());
  EXPECT_EQ(store_->Usage().staged_bytes, 0);
}

TEST_P(BlobStoreSuite, TwoUploadsCannotBothTakeTheLastRoom) {
  limits_.max_total_bytes = 10;
  Reopen();
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto first, store_->OpenUpload(IdOf("123456")));
  EXPECT_THAT(store_->OpenUpload(IdOf("abcdef")),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  first.reset();
  EXPECT_THAT(store_->OpenUpload(IdOf("abcdef")), IsOk());
}

TEST_P(BlobStoreSuite, KeepsDiskFreeForTheDatabase) {
  limits_.reserved_free_bytes = 1000;
  engine_->files.reported_free_bytes = 1004;
  Reopen();
  EXPECT_THAT(PutBlob(*store_, "12345", kNow),
              StatusIs(absl::StatusCode::kResourceExhausted, _));
  EXPECT_THAT(PutBlob(*store_, "1234", kNow), IsOk());
}

TEST_P(BlobStoreSuite, EvictsLeastRecentlyUsedButNeverKeptOnes) {
  ASSERT_THAT(PutBlob(*store_, "old", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "kept", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "newer", kNow + absl::Minutes(1)), IsOk());
  ASSERT_THAT(PutBlob(*store_, "new", kNow + absl::Hours(2)), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      Eviction evicted,
      store_->Evict({IdOf("kept").sha256}, kNow + absl::Hours(1), 1));
  EXPECT_EQ(evicted.bytes, 3);
  EXPECT_THAT(evicted.blobs, ::testing::ElementsAre(IdOf("old").sha256));
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("newer"));
  // Asking for it has made it recently used only as far as kNow.
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      evicted,
      store_->Evict({IdOf("kept").sha256}, kNow + absl::Hours(1), 1000));
  EXPECT_EQ(evicted.bytes, 5);
  EXPECT_TRUE(Has("kept"));
  EXPECT_TRUE(Has("new"));
}

TEST_P(BlobStoreSuite, RemovesTheNamedOnesThatAreNotInUse) {
  ASSERT_THAT(PutBlob(*store_, "old", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "other", kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "new", kNow + absl::Hours(2)), IsOk());
  const std::string never = IdOf("never").sha256;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> gone,
      store_->Remove({IdOf("old").sha256, IdOf("new").sha256, never},
                     kNow + absl::Hours(1)));
  EXPECT_THAT(gone, ::testing::ElementsAre(IdOf("old").sha256, never));
  EXPECT_EQ(store_->Usage().blobs, 2);
  EXPECT_EQ(store_->Usage().blob_bytes, 8);
  Reopen();
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("other"));
  EXPECT_TRUE(Has("new"));
}

TEST_P(BlobStoreSuite, ReaderOutlivesEviction) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf("bytes").sha256));
  ASSERT_THAT(store_->Evict({}, kNow + absl::Hours(1), 100), IsOk());
  EXPECT_EQ(reader->Read(1, 3).value_or(""), "yte");
  EXPECT_THAT(reader->Read(6, 1), StatusIs(absl::StatusCode::kOutOfRange, _));
  EXPECT_THAT(store_->OpenBlob(IdOf("bytes").sha256),
              StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_P(BlobStoreSuite, ASourceReadsWhatTheStoreHolds) {
  const std::string bytes = VariedBytes(3'000'000);
  const BlobId id = IdOf(bytes);
  const auto source = engine_->Source();
  const auto read = [&](const BlobId& wanted) -> absl::StatusOr<std::string> {
    auto reader = source->Open(wanted);
    if (!reader.ok()) return reader.status();
    return (*reader)->Read(0, wanted.size_bytes);
  };
  EXPECT_THAT(read(id), StatusIs(absl::StatusCode::kNotFound, _));
  ASSERT_THAT(PutBlob(*store_, bytes, kNow), IsOk());
  ASSERT_THAT(PutBlob(*store_, "", kNow), IsOk());
  EXPECT_TRUE(read(id).value_or("") == bytes);
  EXPECT_EQ(read(IdOf("")).value_or("unreadable"), "");
  EXPECT_THAT(read(BlobId{id.sha256, id.size_bytes + 1}),
              StatusIs(absl::StatusCode::kDataLoss, _));
  // What the store has open for it stays as long.
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto held, store_->OpenBlob(id.sha256));
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader, source->Open(id));
  EXPECT_TRUE(reader->Read(0, 1'000'000).value_or("") ==
              bytes.substr(0, 1'000'000));
  ASSERT_THAT(store_->Evict({}, kNow + absl::Hours(1), 3'000'000), IsOk());
  EXPECT_FALSE(Has(bytes));
  EXPECT_TRUE(reader->Read(1'000'000, 2'000'000).value_or("") ==
              bytes.substr(1'000'000));
  held.reset();
  EXPECT_THAT(read(id), StatusIs(absl::StatusCode::kNotFound, _));
}

TEST_P(BlobStoreSuite, ForgetsStaleUploadsOnly) {
  const BlobId id = IdOf("0123456789");
  {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
    ASSERT_THAT(upload->Append(0, "01"), IsOk());
    // Still open: not forgotten however old.
    ASSERT_THAT(store_->ForgetUploads(absl::InfiniteFuture()), IsOk());
    EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 2);
  }
  ASSERT_THAT(store_->ForgetUploads(kNow), IsOk());
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 2);
  ASSERT_THAT(store_->ForgetUploads(absl::InfiniteFuture()), IsOk());
  EXPECT_EQ(store_->CommittedBytes(id).value_or(-1), 0);
}

TEST_P(BlobStoreSuite, WrongSizeOfKnownBlobIsAnError) {
  ASSERT_THAT(PutBlob(*store_, "bytes", kNow), IsOk());
  EXPECT_THAT(store_->Contains(BlobId{IdOf("bytes").sha256, 6}, kNow),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
}

// Three parts of 5 MiB and a rest, in pieces that end nowhere near a part.
TEST_P(BlobStoreSuite, LargeUploadGoesOnAfterRestartInAnyPiece) {
  const std::string bytes = VariedBytes((16 << 20) + 12345);
  const BlobId id = IdOf(bytes);
  const size_t piece = (1 << 20) + 77;
  size_t sent = 0;
  while (sent < bytes.size()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
    ASSERT_EQ(upload->staged_bytes(), static_cast<int64_t>(sent));
    for (int i = 0; i < 4 && sent < bytes.size(); ++i) {
      const absl::string_view next =
          absl::string_view(bytes).substr(sent, piece);
      ASSERT_THAT(upload->Append(static_cast<int64_t>(sent), next), IsOk());
      sent += next.size();
    }
    upload.reset();
    Reopen();
    ASSERT_EQ(store_->CommittedBytes(id).value_or(-1),
              static_cast<int64_t>(sent));
    ASSERT_EQ(store_->Usage().staged_bytes, static_cast<int64_t>(sent));
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  ASSERT_THAT(upload->Finish(kNow), IsOk());
  EXPECT_EQ(store_->Usage().staged_bytes, 0);
  EXPECT_EQ(store_->Usage().blob_bytes, id.size_bytes);
  EXPECT_TRUE(ReadBack(bytes) == bytes);
}

TEST_P(BlobStoreSuite, LargeUploadWithOneWrongByteIsRefused) {
  std::string bytes = VariedBytes(11 << 20);
  const BlobId id = IdOf(bytes);
  bytes[100] ^= 1;
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto upload, store_->OpenUpload(id));
  ASSERT_THAT(upload->Append(0, bytes), IsOk());
  EXPECT_THAT(upload->Finish(kNow), StatusIs(absl::StatusCode::kDataLoss, _));
  EXPECT_EQ(store_->Usage().staged_bytes, 0);
  EXPECT_THAT(upload->Append(0, "x"), StatusIs(absl::StatusCode::kAborted, _));
  bytes[100] ^= 1;
  EXPECT_THAT(PutBlob(*store_, bytes, kNow), IsOk());
  EXPECT_TRUE(ReadBack(bytes) == bytes);
}

TEST_P(BlobStoreSuite, ReadsAnyRangesInAnyOrder) {
  const std::string bytes = VariedBytes((1 << 20) + 3);
  ASSERT_THAT(PutBlob(*store_, bytes, kNow), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto reader,
                               store_->OpenBlob(IdOf(bytes).sha256));
  std::string whole;
  while (whole.size() < bytes.size()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::string piece,
        reader->Read(static_cast<int64_t>(whole.size()), 100'000));
    ASSERT_FALSE(piece.empty());
    whole += piece;
  }
  EXPECT_TRUE(whole == bytes);
  for (const size_t offset : {size_t{5}, size_t{1 << 20}, size_t{700'000}}) {
    EXPECT_EQ(reader->Read(static_cast<int64_t>(offset), 10).value_or(""),
              bytes.substr(offset, 10));
  }
  EXPECT_EQ(reader->Read(reader->size_bytes(), 10).value_or("?"), "");
}

TEST_P(BlobStoreSuite, TwoUploadersShareNoBytesUntilTheyAreWhole) {
  BlobId mine = IdOf("0123456789");
  mine.uploader = "mine";
  BlobId yours = mine;
  yours.uploader = "yours";
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto first, store_->OpenUpload(mine));
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto second, store_->OpenUpload(yours));
  ASSERT_THAT(first->Append(0, "0123456789"), IsOk());
  EXPECT_EQ(second->staged_bytes(), 0);
  ASSERT_THAT(second->Append(0, "0123456789"), IsOk());
  EXPECT_THAT(first->Finish(kNow), IsOk());
  EXPECT_THAT(second->Finish(kNow), IsOk());
  EXPECT_EQ(store_->Usage().blobs, 1);
  EXPECT_EQ(store_->Usage().blob_bytes, 10);
}

// Uploads, readers and evictions of the same few blobs meet at any point.
TEST_P(BlobStoreSuite, WhateverThreadsDoBlobsAreWholeOrAbsent) {
  const std::string contents[] = {VariedBytes(1000), VariedBytes(70'000),
                                  VariedBytes(300'000)};
  const auto work = [&](size_t thread) {
    for (size_t round = 0; round < 30; ++round) {
      const std::string& bytes = contents[(thread + round) % 3];
      if ((thread + round) % 5 == 0) {
        EXPECT_THAT(store_->Evict({}, kNow + absl::Hours(1), 1), IsOk());
        continue;
      }
      const auto put = PutBlob(*store_, bytes, kNow);
      // Another thread's upload of the same blob may take over.
      EXPECT_TRUE(put.ok() || absl::IsAborted(put.status())) << put.status();
      const auto reader = store_->OpenBlob(IdOf(bytes).sha256);
      if (absl::IsNotFound(reader.status())) continue;
      ASSERT_THAT(reader, IsOk());
      const auto read = (*reader)->Read(0, (*reader)->size_bytes());
      ASSERT_THAT(read, IsOk());
      EXPECT_TRUE(*read == bytes);
    }
  };
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back(work, thread);
  }
  for (std::thread& thread : threads) thread.join();
  int64_t blobs = 0;
  for (const std::string& bytes : contents) {
    if (!Has(bytes)) continue;
    ++blobs;
    EXPECT_TRUE(ReadBack(bytes) == bytes);
  }
  EXPECT_EQ(store_->Usage().blobs, blobs);
  Reopen();
  EXPECT_EQ(store_->Usage().blobs, blobs);
}

}  // namespace optfarm::storage

#endif  // OPTFARM_TESTS_STORAGE_BLOB_STORE_SUITE_H_
