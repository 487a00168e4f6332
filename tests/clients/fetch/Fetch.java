// SPDX-License-Identifier: Apache-2.0
// Fetch URL [CA-FILE]: the protocol and status, then the body.
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class Fetch {
    public static void main(String[] args) throws Exception {
        HttpClient.Builder b = HttpClient.newBuilder();
        if (args.length > 1) {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            try (FileInputStream in = new FileInputStream(args[1])) {
                store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
            }
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            b.sslContext(context);
        }
        try {
            HttpResponse<String> r = b.build().send(HttpRequest.newBuilder(URI.create(args[0])).build(), HttpResponse.BodyHandlers.ofString());
            System.out.println(r.version() + " " + r.statusCode() + " " + r.headers().firstValue("X-Seen").orElse(""));
            System.out.print(r.body());
            System.exit(r.statusCode() >= 400 ? 1 : 0);
        } catch (java.io.IOException e) {
            System.err.println(e + (e.getCause() == null ? "" : " <- " + e.getCause()));
            System.exit(1);
        }
    }
}
