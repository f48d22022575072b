#include "runtime/transport/grpc/tls_gate.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/steady_time.h"
#include "runtime/identity/openssl.h"
#include "runtime/transport/grpc/socket_names.h"

namespace gossamer {
namespace {

// Bytes that one call of the kernel moves.
constexpr size_t kBlock = 128 << 10;
// Bytes that TLS reads ahead.
constexpr size_t kReadAhead = 64 << 10;
// Half of what the sockets inside hold for the outside, if the kernel allows as
// much: the less it is, the more often the threads wait for each other.
constexpr int kRoomOut = 1 << 20;
// The same for gRPC: it reads all of a flood that is there when the connection
// is reset.
constexpr int kRoomIn = 64 << 10;
// Bytes that one connection may move before the others have their turn.
constexpr size_t kTurn = 1 << 20;
// A record of few bytes costs as much as this many.
constexpr size_t kLeastOfARecord = 1 << 10;
// The new keys of TLS that an end may begin: some, and one for every so many
// bytes.
constexpr uint64_t kKeyUpdates = 32;
constexpr uint64_t kBytesOfAKey = 16 << 20;
// Connections that are accepted before the open ones have their turn.
constexpr int kAcceptTurn = 64;
// Bytes of the certificates that the other end may show.
constexpr long kMostShown = 16 << 10;
// A renewed certificate is shown within this time.
constexpr absl::Duration kRefresh = absl::Seconds(1);
// The time for the last bytes of all connections when the program ends.
constexpr absl::Duration kLastFlush = absl::Seconds(1);
// The time before connections are accepted again when no descriptor was left.
constexpr absl::Duration kRestTime = absl::Milliseconds(100);

// The id of an event is a connection's number, with a bit for gRPC's side of
// it, or a listener's.
constexpr uint64_t kWakes = ~uint64_t{0};
constexpr uint64_t kListens = uint64_t{1} << 63;
constexpr uint64_t kInside = uint64_t{1} << 62;

uint64_t IdOfListener(int socket) {
  return kListens | static_cast<uint64_t>(socket);
}

// Rounded up, for epoll.
int Milliseconds(absl::Duration limit) {
  if (limit == absl::InfiniteDuration()) return -1;
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(
      std::max(limit, absl::ZeroDuration()), absl::Milliseconds(1))));
}

using TlsPtr = std::unique_ptr<SSL, openssl::Free<SSL_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, openssl::Free<SSL_CTX_free>>;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

int SelectHttp2(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char* offered, unsigned int offered_size,
                void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  // gRPC speaks nothing else, and its clients insist on an agreement.
  if (SSL_select_next_proto(&found, size, kHttp2, sizeof kHttp2, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

// Null if the files do not belong together.
ContextPtr MakeContext(const std::string& authority,
                       const std::string& certificate, const std::string& key) {
  const openssl::CertificatePtr root = openssl::ReadCertificatePem(authority);
  const openssl::CertificatePtr own = openssl::ReadCertificatePem(certificate);
  const openssl::KeyPtr secret = openssl::ReadKeyPem(key);
  ContextPtr context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const c = context.get();
  const bool good =
      root && own && secret && c != nullptr &&
      SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
      SSL_CTX_use_certificate(c, own.get()) == 1 &&
      SSL_CTX_use_PrivateKey(c, secret.get()) == 1 &&
      SSL_CTX_check_private_key(c) == 1 &&
      X509_STORE_add_cert(SSL_CTX_get_cert_store(c), root.get()) == 1 &&
      // Every connection is authenticated anew.
      SSL_CTX_set_num_tickets(c, 0) == 1;
  ERR_clear_error();
  if (!good) return nullptr;
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(c, SelectHttp2, nullptr);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_default_read_buffer_len(c, kReadAhead);
  SSL_CTX_set_max_cert_list(c, kMostShown);
  return context;
}

}  // namespace

// The context of new connections, from the files as they are.
class TlsGate::Context {
 public:
  explicit Context(std::shared_ptr<CertificateFolder> folder)
      : folder_(std::move(folder)) {}

  // Null if the files have never been good.
  SSL_CTX* Get() {
    const absl::Time now = SteadyNow();
    if (now < next_look_) return context_.get();
    next_look_ = now + kRefresh;
    std::array<std::string, 3> files;
    for (size_t i = 0; i < files.size(); ++i) {
      const absl::StatusOr<std::string> text =
          ReadPemFile(i == 0   ? folder_->authority_path()
                      : i == 1 ? folder_->certificate_path()
                               : folder_->key_path());
      if (!text.ok()) return context_.get();
      files[i] = *text;
    }
    if (files == files_) return context_.get();
    // While a renewal has replaced some of the files, the others do not match.
    if (ContextPtr made = MakeContext(files[0], files[1], files[2])) {
      context_ = std::move(made);
      files_ = std::move(files);
    }
    return context_.get();
  }

 private:
  const std::shared_ptr<CertificateFolder> folder_;
  absl::Time next_look_ = absl::InfinitePast();
  std::array<std::string, 3> files_;  // what the context was made of
  ContextPtr context_;
};

// One connection: TLS outside, and plain bytes for gRPC inside.
class TlsGate::Relay {
 public:
  enum class Step { kWaits, kMore, kOver };

  Relay(FileDescriptor outside, TlsPtr tls)
      : outside_(std::move(outside)), tls_(std::move(tls)) {
    SSL_set0_rbio(tls_.get(), BIO_new_socket(outside_.get(), BIO_NOCLOSE));
    BIO* const unsent = BIO_new(Appends());
    BIO_set_data(unsent, &unsent_);
    SSL_set0_wbio(tls_.get(), unsent);
    SSL_set_msg_callback(tls_.get(), CountKeyUpdates);
    SSL_set_msg_callback_arg(tls_.get(), this);
  }

  int outside() const { return outside_.get(); }
  int inside() const { return inside_.get(); }
  // Whether gRPC has to read before more can go inside.
  bool full() const { return !received_.empty(); }
  // Whether the kernel has been asked to tell when it has.
  bool awaits_room = false;
  // The time by which it has to be on, or over.
  absl::Time deadline = absl::InfiniteFuture();

  // Goes on with the handshake.  kMore: it is done.
  Step Shake() {
    ERR_clear_error();
    const int result = SSL_accept(tls_.get());
    const bool blocked = result != 1 && Blocked(result);
    // An alert tells the other end what was wrong.
    if (!Flush() || (result != 1 && !blocked)) return Step::kOver;
    return blocked ? Step::kWaits : Step::kMore;
  }

  // The certificate that the handshake has verified; empty: none.
  std::string Certificate() const {
    const openssl::CertificatePtr shown(SSL_get1_peer_certificate(tls_.get()));
    if (!shown || SSL_get_verify_result(tls_.get()) != X509_V_OK) return "";
    return openssl::ToPem(
        [&](BIO* out) { return PEM_write_bio_X509(out, shown.get()); });
  }

  // Makes the two sockets inside and returns gRPC's, whose other end is called
  // `name`; -1 if the kernel has none left.
  FileDescriptor Open(const std::string& name) {
    std::array<int, 2> ends;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                     ends.data()) != 0) {
      return FileDescriptor();
    }
    inside_ = FileDescriptor(ends[0]);
    FileDescriptor other(ends[1]);
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &kRoomIn, sizeof kRoomIn);
    ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &kRoomOut, sizeof kRoomOut);
    sockaddr_un own = {};
    own.sun_family = AF_UNIX;
    // A name that begins with a zero is no file.
    name.copy(own.sun_path + 1, sizeof own.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                             1 + name.size());
    if (::bind(ends[0], reinterpret_cast<const sockaddr*>(&own), size) != 0) {
      return FileDescriptor();
    }
    return other;
  }

  // Carries bytes both ways, as many as the sockets take or a turn allows.
  Step Carry(std::vector<char>& scratch) {
    const bool more_in = CarryIn(scratch);
    const Step out = CarryOut(scratch);
    return out == Step::kWaits && more_in ? Step::kMore : out;
  }

 private:
  // A sink of OpenSSL that never blocks.
  static const BIO_METHOD* Appends() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* const m = BIO_meth_new(
          BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "appends to a string");
      BIO_meth_set_create(m, [](BIO* b) {
        BIO_set_init(b, 1);
        return 1;
      });
      BIO_meth_set_write(m, [](BIO* b, const char* bytes, int size) {
        static_cast<std::string*>(BIO_get_data(b))
            ->append(bytes, static_cast<size_t>(size));
        return size;
      });
      BIO_meth_set_ctrl(m, [](BIO*, int what, long, void*) -> long {
        return what == BIO_CTRL_FLUSH ? 1 : 0;
      });
      return m;
    }();
    return made;
  }

  // OpenSSL answers and passes over as many as come, within one call.
  static void CountKeyUpdates(int sent, int, int type, const void* bytes,
                              size_t size, SSL*, void* relay) {
    if (sent != 0 || type != SSL3_RT_HANDSHAKE || size == 0 ||
        *static_cast<const unsigned char*>(bytes) != SSL3_MT_KEY_UPDATE) {
      return;
    }
    auto* const self = static_cast<Relay*>(relay);
    if (++self->key_updates_ > kKeyUpdates + self->came_ / kBytesOfAKey) {
      ResetSocket(self->outside());
    }
  }

  bool Blocked(int result) const {
    const int error = SSL_get_error(tls_.get(), result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  // Returns whether there is more to carry at once.
  bool CarryIn(std::vector<char>& scratch) {
    for (size_t turn = 0; turn < kTurn;) {
      if (!Deliver(std::exchange(received_, {}))) return false;
      if (ended_) {
        // gRPC learns that the other end has gone, and then closes its own.
        // The kernel would tell this end of each call, also of a second one.
        if (!std::exchange(told_, true)) ::shutdown(inside_.get(), SHUT_WR);
        return false;
      }
      size_t size = 0;
      bool blocked = false;
      while (size < kBlock && turn < kTurn && !ended_ && !blocked) {
        ERR_clear_error();
        const int n = SSL_read(tls_.get(), scratch.data() + size,
                               static_cast<int>(kBlock - size));
        if (n > 0) {
          size += static_cast<size_t>(n);
          turn += std::max(static_cast<size_t>(n), kLeastOfARecord);
        } else {
          blocked = Blocked(n);
          ended_ = !blocked;
        }
      }
      came_ += size;
      if (!Deliver({scratch.data(), size}) || blocked) return false;
    }
    return true;
  }

  // Returns false if gRPC does not take all of it now; `received_` has the
  // rest.
  bool Deliver(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(inside_.get(), bytes.data(), bytes.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0) {
        if (errno == EINTR) continue;
        // gRPC has closed its end: nobody wants them.
        received_ = WouldBlock() ? std::string(bytes) : "";
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  Step CarryOut(std::vector<char>& scratch) {
    for (size_t turn = 0;;) {
      if (!Flush()) return Step::kOver;
      if (!unsent_.empty()) return Step::kWaits;
      if (turn >= kTurn) return Step::kMore;
      const ssize_t n =
          ::recv(inside_.get(), scratch.data(), kBlock, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && WouldBlock()) return Step::kWaits;
      ERR_clear_error();
      if (n <= 0) {
        // The other end can tell this end from a loss.
        SSL_shutdown(tls_.get());
        Flush();
        return Step::kOver;
      }
      turn += static_cast<size_t>(n);
      unsent_.reserve(static_cast<size_t>(n + n / 64 + 64));
      if (SSL_write(tls_.get(), scratch.data(), static_cast<int>(n)) != n) {
        return Step::kOver;
      }
    }
  }

  // Sends what TLS has made, as far as the socket takes it.  Returns false if
  // the connection is lost.
  bool Flush() {
    size_t at = 0;
    while (at < unsent_.size()) {
      const ssize_t n =
          ::send(outside_.get(), unsent_.data() + at, unsent_.size() - at,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        at += static_cast<size_t>(n);
      } else if (WouldBlock()) {
        break;
      } else if (errno != EINTR) {
        return false;
      }
    }
    // An empty string keeps its memory otherwise, for each connection.
    unsent_ = unsent_.substr(at);
    return true;
  }

  const FileDescriptor outside_;
  // The bytes that the other side does not take yet, encrypted if it is the
  // outside.
  std::string received_, unsent_;
  const TlsPtr tls_;  // writes to `unsent_`
  FileDescriptor inside_;
  uint64_t key_updates_ = 0;
  uint64_t came_ = 0;   // bytes, without TLS
  bool ended_ = false;  // nothing more comes from outside
  bool told_ = false;   // gRPC was told so
};

void ShownCertificates::Add(uint64_t connection, std::string pem) {
  MutexLock lock(&mu_);
  certificates_.insert_or_assign(connection, std::move(pem));
}

void ShownCertificates::Remove(uint64_t connection) {
  MutexLock lock(&mu_);
  certificates_.erase(connection);
}

absl::StatusOr<std::string> ShownCertificates::Of(
    absl::string_view peer) const {
  const std::optional<uint64_t> connection = NumberBehindGate(peer);
  MutexLock lock(&mu_);
  const auto it = connection.has_value() ? certificates_.find(*connection)
                                         : certificates_.end();
  if (it == certificates_.end()) {
    return absl::UnavailableError("the connection has ended");
  }
  return it->second;
}

TlsGate::TlsGate(std::shared_ptr<CertificateFolder> folder,
                 std::shared_ptr<ShownCertificates> shown,
                 ServerSockets sockets, absl::Duration patience,
                 grpc::ServerBuilder* builder)
    : sockets_(std::move(sockets)),
      patience_(patience),
      context_(std::make_unique<Context>(std::move(folder))),
      shown_(std::move(shown)),
      server_(builder->experimental().AddExternalConnectionAcceptor(
          grpc::ServerBuilder::experimental_type::ExternalConnectionType::
              FROM_FD,
          grpc::InsecureServerCredentials())),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      scratch_(kBlock) {}

TlsGate::~TlsGate() {
  StopAccepting();
  ending_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

int TlsGate::Listen(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (poll_.get() < 0 || wake_.get() < 0 || colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return 0;
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  // Every address of this machine is that of IPv6 and of IPv4, as gRPC has it.
  const bool all = host == "0.0.0.0" || host == "::";
  int got = ListenOn(all ? "::" : host, port);
  if (got == 0 && all) got = ListenOn("0.0.0.0", port);
  return got;
}

int TlsGate::ListenOn(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found) !=
      0) {
    return 0;
  }
  const std::unique_ptr<addrinfo, openssl::Free<::freeaddrinfo>> all(found);
  // As with gRPC, one address of a name is enough: a machine without IPv6 may
  // still know names of it.
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    sockaddr_storage own = {};
    std::memcpy(&own, a->ai_addr, a->ai_addrlen);
    // All addresses of a name get the port that the first one has got.
    auto& field = own.ss_family == AF_INET6
                      ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                      : reinterpret_cast<sockaddr_in&>(own).sin_port;
    if (!listeners_.empty()) field = htons(static_cast<uint16_t>(port));
    FileDescriptor listener(
        ::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int fd = listener.get();
    if (fd < 0) continue;
    const int on = 1, off = 0;
    // As gRPC sets it: the time for bytes that the other end does not
    // acknowledge.  Accepted sockets inherit it.
    const auto wait =
        static_cast<unsigned>(absl::ToInt64Milliseconds(patience_));
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &wait, sizeof wait);
    sockets_.OnListener(fd);
    auto* const name = reinterpret_cast<sockaddr*>(&own);
    socklen_t size = a->ai_addrlen;
    if (::bind(fd, name, size) != 0 || ::listen(fd, SOMAXCONN) != 0 ||
        ::getsockname(fd, name, &size) != 0) {
      continue;
    }
    port = ntohs(field);
    listeners_.push_back(std::move(listener));
  }
  return listeners_.empty() ? 0 : port;
}

void TlsGate::Start() {
  Watch(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWakes);
  for (const FileDescriptor& listener : listeners_) {
    Watch(EPOLL_CTL_ADD, listener.get(), EPOLLIN, IdOfListener(listener.get()));
  }
  thread_ = std::thread([this] { Run(); });
}

void TlsGate::StopAccepting() {
  {
    // gRPC would neither take nor close a socket once it has been shut down.
    MutexLock lock(&mu_);
    accepting_ = false;
  }
  Wake();
}

void TlsGate::Wake() { ::eventfd_write(wake_.get(), 1); }

bool TlsGate::Watch(int how, int fd, uint32_t events, uint64_t id) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(poll_.get(), how, fd, &event) == 0;
}

void TlsGate::Run() {
  pthread_setname_np(pthread_self(), "tls-gate");
  absl::Time end = absl::InfiniteFuture();
  std::array<epoll_event, 64> events;
  while (!ending_ || (!relays_.empty() && SteadyNow() < end)) {
    absl::Duration limit = std::min(EndOverdue(), end - SteadyNow());
    if (!unfinished_.empty()) limit = absl::ZeroDuration();
    const int n =
        ::epoll_wait(poll_.get(), events.data(),
                     static_cast<int>(events.size()), Milliseconds(limit));
    std::set<uint64_t> ready = std::exchange(unfinished_, {});
    for (int i = 0; i < n; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kWakes) {
        OnWake();
        if (ending_) end = std::min(end, SteadyNow() + kLastFlush);
      } else if ((id & kListens) != 0) {
        Accept(static_cast<int>(id & ~kListens));
      } else {
        // An end that does not read would otherwise keep what gRPC has left.
        if ((id & kInside) != 0 && (events[i].events & EPOLLHUP) != 0) {
          SetDeadline(id & ~kInside, SteadyNow() + patience_);
        }
        ready.insert(id & ~kInside);
      }
    }
    for (const uint64_t id : ready) Advance(id);
  }
  while (!relays_.empty()) Drop(relays_.begin()->first);
}

// Another thread has changed `accepting_` or `ending_`.
void TlsGate::OnWake() {
  eventfd_t count = 0;
  ::eventfd_read(wake_.get(), &count);
  if (accepting()) return;
  listeners_.clear();
  for (auto it = relays_.begin(); it != relays_.end();) {
    const auto& [id, relay] = *it++;
    if (relay->inside() < 0) Drop(id);
  }
}

void TlsGate::Accept(int listener) {
  for (int i = 0; i < kAcceptTurn && accepting(); ++i) {
    FileDescriptor socket(
        ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (!WouldBlock()) {
        // No descriptor is left: the connection goes on waiting.
        ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, listener, nullptr);
        deadlines_.emplace(SteadyNow() + kRestTime, IdOfListener(listener));
      }
      return;
    }
    const int fd = socket.get();
    if (!sockets_.OnAccepted(fd)) continue;
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_CTX* const context = context_->Get();
    TlsPtr tls(context == nullptr ? nullptr : SSL_new(context));
    const std::optional<uint64_t> id = CookieOf(fd);
    if (tls == nullptr || !id.has_value() ||
        !Watch(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLET, *id)) {
      continue;
    }
    relays_.try_emplace(
        *id, std::make_unique<Relay>(std::move(socket), std::move(tls)));
    SetDeadline(*id, SteadyNow() + patience_);
  }
}

void TlsGate::Advance(uint64_t id) {
  const auto it = relays_.find(id);
  if (it == relays_.end()) return;
  Relay& relay = *it->second;
  Relay::Step step = Relay::Step::kMore;
  if (relay.inside() >= 0) {
    step = relay.Carry(scratch_);
  } else if (step = relay.Shake(); step == Relay::Step::kMore) {
    // Bytes may have come with the handshake.
    step = HandOver(id, relay) ? Relay::Step::kMore : Relay::Step::kOver;
  }
  if (step == Relay::Step::kMore) unfinished_.insert(id);
  if (step == Relay::Step::kOver) {
    Drop(id);
  } else if (relay.full() != relay.awaits_room) {
    // Asked always, the kernel would tell of all that gRPC reads.
    relay.awaits_room = relay.full();
    Watch(EPOLL_CTL_MOD, relay.inside(),
          EPOLLIN | EPOLLET | (relay.full() ? EPOLLOUT : 0u), id | kInside);
  }
}

bool TlsGate::HandOver(uint64_t id, Relay& relay) {
  std::string certificate = relay.Certificate();
  const std::string address = OtherEndOf(relay.outside()).address;
  if (certificate.empty() || address.empty()) return false;
  FileDescriptor server = relay.Open(NameBehindGate(id, address));
  if (server.get() < 0 ||
      !Watch(EPOLL_CTL_ADD, relay.inside(), EPOLLIN | EPOLLET, id | kInside)) {
    return false;
  }
  MutexLock lock(&mu_);
  if (!accepting_) return false;
  EndDeadline(id);
  shown_->Add(id, std::move(certificate));
  ++handed_;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters p;
  // Newer releases of gRPC refuse a connection without one.
  p.listener_fd = listeners_.front().get();
  p.fd = server.Release();
  server_->HandleNewConnection(&p);
  return true;
}

// The first one counts: an event may come again and again.
void TlsGate::SetDeadline(uint64_t id, absl::Time deadline) {
  const auto it = relays_.find(id);
  if (it == relays_.end() || it->second->deadline != absl::InfiniteFuture()) {
    return;
  }
  it->second->deadline = deadline;
  deadlines_.emplace(deadline, id);
}

void TlsGate::EndDeadline(uint64_t id) {
  const auto it = relays_.find(id);
  if (it == relays_.end()) return;
  deadlines_.erase(
      {std::exchange(it->second->deadline, absl::InfiniteFuture()), id});
}

absl::Duration TlsGate::EndOverdue() {
  for (;;) {
    if (deadlines_.empty()) return absl::InfiniteDuration();
    const auto [when, id] = *deadlines_.begin();
    const absl::Duration left = when - SteadyNow();
    if (left > absl::ZeroDuration()) return left;
    deadlines_.erase(deadlines_.begin());
    if ((id & kListens) == 0) {
      Drop(id);
    } else if (accepting()) {
      Watch(EPOLL_CTL_ADD, static_cast<int>(id & ~kListens), EPOLLIN, id);
    }
  }
}

void TlsGate::Drop(uint64_t id) {
  EndDeadline(id);
  relays_.erase(id);
  shown_->Remove(id);
}

}  // namespace gossamer
