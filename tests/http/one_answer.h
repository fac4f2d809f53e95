// A socket that answers once.

#ifndef OPTFARM_TESTS_HTTP_ONE_ANSWER_H_
#define OPTFARM_TESTS_HTTP_ONE_ANSWER_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optfarm::http {

// Answers one connection with `answer` when `end` has come, and keeps what it
// was asked.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer, std::string end = "END")
      : acceptor_(context_, {boost::asio::ip::make_address("127.0.0.1"), 0}),
        thread_([this, answer = std::move(answer), end = std::move(end)] {
          boost::asio::ip::tcp::socket socket = acceptor_.accept();
          boost::system::error_code error;
          boost::asio::read_until(socket, boost::asio::dynamic_buffer(asked_),
                                  end, error);
          boost::asio::write(socket, boost::asio::buffer(answer), error);
        }) {}
  ~OneAnswer() { Join(); }

  std::string url() {
    return absl::StrCat("http://127.0.0.1:", acceptor_.local_endpoint().port(),
                        "/hook");
  }
  const std::string& Asked() {
    Join();
    return asked_;
  }

 private:
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::string asked_;
  std::thread thread_;
};

}  // namespace optfarm::http

#endif  // OPTFARM_TESTS_HTTP_ONE_ANSWER_H_
