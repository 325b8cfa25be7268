use super::*;

#[test]
fn the_fastest_server_gets_most_queries_and_each_other_one_some() {
    let mut lab = Lab::new();
    let servers: Vec<SocketAddr> = (0..4).map(server).collect();
    for _ in 0..50 {
        for (server, milliseconds) in servers.iter().zip([10, 60, 150, 300]) {
            lab.exchange(*server, milliseconds);
        }
    }
    let counts = lab.count_selections(&servers, 20_000);
    // 5 % of the queries are distributed evenly.
    assert!((19_100..=19_400).contains(&counts[0]), "{counts:?}");
    assert!(counts[1..].iter().all(|count| (190..=310).contains(count)), "{counts:?}");
}

#[test]
fn equally_fast_servers_share_the_queries() {
    let mut lab = Lab::new();
    let servers = [server(0), server(1), server_v6(2), server_v6(3)];
    for _ in 0..50 {
        servers.iter().for_each(|server| lab.exchange(*server, 20));
    }
    let counts = lab.count_selections(&servers, 20_000);
    assert!(counts.iter().all(|count| (4700..=5300).contains(count)), "{counts:?}");
}

#[test]
fn unknown_servers_share_the_queries() {
    let mut lab = Lab::new();
    let servers: Vec<SocketAddr> = (0..13).map(server).collect();
    let counts = lab.count_selections(&servers, 13_000);
    assert!(counts.iter().all(|count| (880..=1120).contains(count)), "{counts:?}");
}

#[test]
fn an_unknown_server_is_queried_sooner_if_it_may_gain_more() {
    for (milliseconds, expected) in [(10, 200..1200), (150, 3500..5500), (370, 8800..10_001)] {
        let mut lab = Lab::new();
        (0..50).for_each(|_| lab.exchange(server(0), milliseconds));
        let counts = lab.count_selections(&[server(0), server(1)], 10_000);
        assert!(expected.contains(&counts[1]), "{milliseconds} ms: {counts:?}");
    }
}

#[test]
fn a_lost_response_makes_a_server_no_slower_than_its_timeout() {
    let mut lab = Lab::new();
    for _ in 0..50 {
        lab.exchange(server(0), 10);
        lab.exchange(server(1), 300);
    }
    let purpose = lab.purpose("example.");
    lab.lose(server(0), purpose);
    let counts = lab.count_selections(&[server(0), server(1)], 1000);
    assert!(counts[0] > 900, "{counts:?}");
    // After the second one, all others come first.
    lab.lose(server(0), purpose);
    let counts = lab.count_selections(&[server(0), server(1)], 1000);
    assert!((1..60).contains(&counts[0]), "{counts:?}");
}

#[test]
fn a_question_goes_to_all_servers_before_one_gets_it_again_and_to_none_more_than_three_times() {
    let mut lab = Lab::new();
    let servers: Vec<SocketAddr> = (0..3).map(server).collect();
    for _ in 0..50 {
        lab.exchange(servers[0], 10);
        lab.exchange(servers[1], 200);
    }
    let (purpose, mut tried) = (lab.purpose("example."), Vec::<(SocketAddr, u8)>::new());
    for round in 1..=3 {
        for _ in 0..3 {
            let selected = lab.table.select(&servers, &tried, purpose, lab.now, lab.random.random());
            let selected = selected.expect("a server");
            match tried.iter_mut().find(|(server, _)| *server == selected) {
                Some((_, count)) => *count += 1,
                None => tried.push((selected, 1)),
            }
        }
        assert!(tried.len() == 3 && tried.iter().all(|(_, count)| *count == round), "{tried:?}");
    }
    let selected = lab.table.select(&servers, &tried, purpose, lab.now, 5);
    assert_eq!(selected, Err(NoServer::Tried));
    assert_eq!(lab.table.select(&[], &[], purpose, lab.now, 5), Err(NoServer::Tried));
}

#[test]
fn a_lame_server_is_avoided_for_its_zone_and_is_the_last_resort_once() {
    let mut lab = Lab::new();
    let [zone, other] = ["example.", "other.example."].map(|zone| lab.purpose(zone));
    let servers = [server(0), server(1), server(2)];
    lab.table.mark_lame(servers[0], zone.zone, lab.now);
    assert_eq!(lab.count_selections(&servers, 1000)[0], 0);
    assert_eq!(lab.select(&servers[..1], other), Ok(servers[0]));
    lab.table.mark_lame(servers[1], zone.zone, lab.now);
    lab.table.mark_lame(servers[2], zone.zone, lab.now);
    let last_resort = lab.select(&servers, zone).expect("a server");
    let select = |tried: &[(SocketAddr, u8)]| lab.table.select(&servers, tried, zone, lab.now, 7);
    assert_eq!(select(&[(last_resort, 1)]), Err(NoServer::Lame));
    lab.pass(300_000);
    assert!(lab.count_selections(&servers, 1000)[0] > 200);
}

#[test]
fn servers_of_an_unreachable_family_come_last_until_one_answers() {
    let mut lab = Lab::new();
    let servers = [server(0), server_v6(1)];
    for number in 10..14 {
        lab.table.failed(lab.begin(server_v6(number)), SendFailure::Unreachable, lab.now);
    }
    assert_eq!(lab.count_selections(&servers, 1000), [1000, 0]);
    // They are the last resort.
    let purpose = lab.purpose("example.");
    assert_eq!(lab.select(&servers[1..], purpose), Ok(servers[1]));
    lab.pass(2000);
    assert!(lab.count_selections(&servers, 1000)[1] > 300);
    lab.table.failed(lab.begin(server_v6(20)), SendFailure::Unreachable, lab.now);
    assert_eq!(lab.count_selections(&servers, 1000), [1000, 0]);
    lab.exchange(server_v6(21), 10);
    assert!(lab.count_selections(&servers, 1000)[1] > 300);
}

#[test]
fn silence_of_one_server_or_of_known_servers_is_not_silence_of_a_family() {
    let mut lab = Lab::new();
    let purpose = lab.purpose("example.");
    (0..4).for_each(|_| {
        lab.lose(server_v6(10), purpose);
    });
    let known: Vec<SocketAddr> = (20..40).map(server_v6).collect();
    known.iter().for_each(|server| lab.exchange(*server, 10));
    for server in known {
        lab.lose(server, purpose);
    }
    let servers = [server(0), server_v6(1)];
    assert!(lab.count_selections(&servers, 1000)[1] > 300);
    // Many networks, none of which ever answered.
    for number in 100..120 {
        lab.lose(server_v6(number), purpose);
    }
    assert_eq!(lab.count_selections(&servers, 1000), [1000, 0]);
}
